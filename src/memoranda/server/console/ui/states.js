// What a page shows instead of content: nothing there, on its way, failed, or not allowed.
import { html } from "./core.js";
import { Icon } from "./icons.js";
import { Button } from "./form.js";
import { t } from "../strings.js";

/** @typedef {import("../vendor/htm-preact.js").Child} Child */

/** @param {{ icon: string, title: string, body?: string, children?: Child, kind?: string }} props */
function Notice({ icon, title, body, children, kind = "" }) {
  return html`<div class=${`notice ${kind}`}>
    <span class="notice-icon"><${Icon} name=${icon} /></span>
    <h2>${title}</h2>
    ${body && html`<p>${body}</p>`}
    ${children}
  </div>`;
}

/** @param {{ title: string, body?: string, children?: Child }} props */
export function Empty({ title, body, children }) {
  return html`<${Notice} icon="empty" title=${title} body=${body}>${children}<//>`;
}

/**
 * No row passes the filters. The button that clears them goes with them: the focus moves to the page.
 * @param {{ title: string, body: string, label: string, clear: () => void }} props
 */
export function NoMatch({ title, body, label, clear }) {
  const cleared = () => {
    clear();
    document.getElementById("main")?.focus({ preventScroll: true });
  };
  return html`<${Empty} title=${title} body=${body}><${Button} onClick=${cleared}>${label}<//><//>`;
}

/** Grey lines in place of content; it appears after a moment, so that a quick answer does not flicker. */
export function Loading({ lines = 6 }) {
  return html`<div class="loading" role="status">
    <span class="hidden">${t.loading}</span>
    ${Array.from({ length: lines }, (_, i) => html`<div class="bone" key=${i} style=${{ width: `${92 - ((i * 17) % 40)}%` }} />`)}
  </div>`;
}

/** What went wrong, and the way to try again. @param {{ error: import("../api.js").ApiError, retry?: () => void }} props */
export function Failed({ error, retry }) {
  if (error.kind === "aborted") return null;
  const locked = error.kind === "forbidden" || error.kind === "unauthorized";
  return html`<div role="alert">
    <${Notice} kind=${locked ? "" : "bad"} icon=${locked ? "lock" : "alert"} title=${t.errors.title[error.kind]} body=${error.message}>
      ${retry && !locked && html`<${Button} onClick=${retry}>${t.retry}<//>`}
    <//>
  </div>`;
}

/**
 * The content of a loaded value, or the state in its place.
 * @template T
 * @param {{ of: { data: T | null, error: import("../api.js").ApiError | null, reload: () => void }, lines?: number, children: (data: T) => Child }} props
 */
export function Loaded({ of, lines, children }) {
  if (of.error) return html`<${Failed} error=${of.error} retry=${of.reload} />`;
  if (of.data === null) return html`<${Loading} lines=${lines} />`;
  return children(of.data);
}
