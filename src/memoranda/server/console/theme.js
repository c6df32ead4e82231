// Light, dark, or what the system says; kept in this browser.
import { kept } from "./ui/core.js";

export const THEMES = ["system", "light", "dark"];
export const theme = kept("memoranda-theme", "system");

theme.subscribe((value) => {
  if (value === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", value);
});
