// Icons, drawn for a grid of 16; decoration only, so that screen readers pass over them.
import { html } from "./core.js";

/** @type {Record<string, string>} */
const PATHS = {
  memories: "M3 3.5h10v9H3zM3 6.5h10M6 3.5v9",
  context: "M3 3h10v10H3zM5.5 6h5M5.5 8.2h5M5.5 10.4h3",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.4 10.4 13.5 13.5",
  close: "M4 4l8 8M12 4l-8 8",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  archive: "M2.5 3h11v3h-11zM3.5 6v7h9V6M6.5 8.5h3",
  restore: "M3 8a5 5 0 1 0 1.6-3.7M3 2.5v3h3",
  delete: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5",
  edit: "M3 13l.6-2.6 7-7 2 2-7 7z",
  filter: "M2.5 4h11M4.5 8h7M6.5 12h3",
  sun: "M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6zM8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1",
  moon: "M13 9.3A5.5 5.5 0 0 1 6.7 3 5.5 5.5 0 1 0 13 9.3z",
  system: "M2.5 3h11v7.5h-11zM6 13h4",
  signout: "M6.5 3H3v10h3.5M6.5 8h7M11 5.5 13.5 8 11 10.5",
  alert: "M8 2.5 14 13H2zM8 6.5v3M8 11.2v.3",
  lock: "M4 7h8v6H4zM5.5 7V5a2.5 2.5 0 0 1 5 0v2",
  empty: "M2.5 9 4.5 3h7l2 6v4h-11zM2.5 9H6l.8 1.5h2.4L10 9h3.5",
  check: "M3.5 8.5 6.5 11.5 12.5 5",
  up: "M8 12.5v-9M4.5 7 8 3.5 11.5 7",
  down: "M8 3.5v9M4.5 9 8 12.5 11.5 9",
  ask: "M2.5 3h11v8H8l-3 2.5V11H2.5z",
  facts: "M3.5 3v10M3.5 5H9M9 3.5v3M3.5 10.5H12M12 9v3",
  knowledge: "M3 3h4.5v10H3zM7.5 3H10v10H7.5M10.4 3.6l2.2-.5 1 9.4-2.2.5",
  sessions: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3l2.2 1.6",
  activity: "M1.8 8.5h3l1.8-5 2.8 9 1.8-4h3",
  admin: "M8 2.5 13 4.5v3.2c0 3-2.1 4.8-5 5.8-2.9-1-5-2.8-5-5.8V4.5z",
  forget: "M6.5 13 2.8 9.3 9 3.1l4.2 4.2L7.5 13zM5.6 6.5l4.2 4.2M6.5 13H13",
  evaluation: "M3 13V8.5M6.4 13V3M9.7 13V6M13 13v-3",
  add: "M8 3v10M3 8h10",
  back: "M9.5 3.5 5 8l4.5 4.5",
  upload: "M8 10.5v-8M4.8 5.5 8 2.3l3.2 3.2M3 10.5V13h10v-2.5",
  folder: "M2.5 4h4l1.3 1.5h5.7v7h-11z",
  download: "M8 2.5v8M4.8 7.5 8 10.7l3.2-3.2M3 11v2.5h10V11",
  stop: "M4.5 4.5h7v7h-7z",
  send: "M8 13V3M3.8 7.2 8 3l4.2 4.2",
  home: "M2.5 7.5 8 2.8l5.5 4.7M4 6.5V13h8V6.5M6.8 13V9.5h2.4V13",
  connect: "M6.5 9.5 9.5 6.5M7 4.5l1.6-1.6a3.2 3.2 0 0 1 4.5 4.5L11.5 9M9 11.5l-1.6 1.6a3.2 3.2 0 0 1-4.5-4.5L4.5 7",
  map: "M4 5.5v0M7 10.5v0M11 4v0M12 9.5v0M8 7v0M4.5 12v0",
};

/** @param {{ name: string }} props */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
    <path d=${PATHS[name] ?? ""} fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" />
  </svg>`;
}
