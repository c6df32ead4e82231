// Tabs as screen readers know them: arrows move, and the panel belongs to its tab.
import { html, useId, useRef } from "./core.js";
import { t } from "../strings.js";

/** @typedef {import("../vendor/htm-preact.js").Child} Child */

/**
 * @param {{ label: string, tabs: { id: string, label: string, count?: number }[], current: string, onChange: (id: string) => void, children?: Child }} props
 */
export function Tabs({ label, tabs, current, onChange, children }) {
  const id = useId();
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  /** @param {KeyboardEvent} event */
  const keyed = (event) => {
    const at = tabs.findIndex((tab) => tab.id === current);
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const next = (at + step + tabs.length) % tabs.length;
    onChange(/** @type {{ id: string }} */ (tabs[next]).id);
    /** @type {HTMLElement | undefined} */ (list.current?.children[next])?.focus();
  };
  return html`<div class="tabbed">
    <div class="tabs" role="tablist" aria-label=${label} ref=${list} onKeyDown=${keyed}>
      ${tabs.map((tab) => html`<button key=${tab.id} type="button" role="tab" id=${`${id}-${tab.id}`} aria-selected=${String(tab.id === current)}
        aria-controls=${`${id}-panel`} tabIndex=${tab.id === current ? 0 : -1} onClick=${() => onChange(tab.id)}>
        ${tab.label}${tab.count !== undefined && html`<span class="count">${t.number(tab.count)}</span>`}
      </button>`)}
    </div>
    <div class="panel" role="tabpanel" id=${`${id}-panel`} aria-labelledby=${`${id}-${current}`} tabIndex=${0}>${children}</div>
  </div>`;
}
