// Short messages at the bottom; each goes away by itself unless it is an error, and may offer to undo.
import { html, signal, useSignal } from "./core.js";
import { Button, IconButton } from "./form.js";
import { t } from "../strings.js";

/** @typedef {{ id: number, text: string, bad: boolean, action?: { label: string, run: () => void } }} Toast */

const shown = signal(/** @type {Toast[]} */ ([]));
const SECONDS = 6;
let last = 0;

/**
 * @param {string} text
 * @param {{ bad?: boolean, action?: { label: string, run: () => void } }} [options]
 */
export function toast(text, { bad = false, action } = {}) {
  const id = ++last;
  shown.value = [...shown.peek().slice(-3), { id, text, bad, ...(action ? { action } : {}) }];
  if (!bad) setTimeout(() => dismiss(id), SECONDS * 1000);
}

/** @param {number} id */
function dismiss(id) {
  shown.value = shown.peek().filter((one) => one.id !== id);
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${useSignal(shown).map(({ id, text, bad, action }) => html`<div class=${`toast ${bad ? "bad" : ""}`} key=${id}>
      <span>${text}</span>
      ${action && html`<${Button} small onClick=${() => { dismiss(id); action.run(); }}>${action.label}<//>`}
      <${IconButton} icon="close" label=${t.close} onClick=${() => dismiss(id)} />
    </div>`)}
  </div>`;
}
