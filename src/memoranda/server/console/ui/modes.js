// The parts of a page, each with an address of its own.
import { html } from "./core.js";

/** @param {{ label: string, modes: { id: string, label: string, href: string }[], current: string }} props */
export function Modes({ label, modes, current }) {
  return html`<nav class="modes" aria-label=${label}>
    ${modes.map((one) => html`<a key=${one.id} href=${one.href} aria-current=${one.id === current ? "page" : null}>${one.label}</a>`)}
  </nav>`;
}
