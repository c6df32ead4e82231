// How much of a limit is used, and parts of a whole.
import { html } from "./core.js";

/**
 * A value under its limit; `most` null is no limit.
 * @param {{ label: string, value: number, most: number | null, format: (n: number) => string, says: string }} props
 */
export function Meter({ label, value, most, format, says }) {
  const share = most === null ? 0 : most === 0 ? 1 : Math.min(1, value / most);
  const tone = most === null ? "" : share >= 1 ? "minus" : share >= 0.8 ? "near" : "total";
  return html`<div class="meter">
    <div class="meter-head"><span>${label}</span><span class="meter-value"><strong>${format(value)}</strong> <span class="quiet">${says}</span></span></div>
    <span class="bar" aria-hidden="true"><span class=${`fill ${tone}`} style=${{ width: `${share * 100}%` }} /></span>
  </div>`;
}

/**
 * Parts of a whole side by side, with their numbers below. `tone` is the name of a colour of parts.
 * @param {{ parts: { id: string, label: string, tone: string, value: number }[], whole: number, format: (n: number) => string }} props
 */
export function Shares({ parts, whole, format }) {
  const there = parts.filter((part) => part.value > 0);
  return html`<div class="shares">
    <div class="shares-bar" aria-hidden="true">${there.map((part) => html`<span key=${part.id} class=${`share part-${part.tone}`} style=${{ width: `${(100 * part.value) / Math.max(whole, 1e-9)}%` }} />`)}</div>
    <ul class="shares-legend">${there.map((part) => html`<li key=${part.id}><span class=${`dot part-${part.tone}`} aria-hidden="true" />${part.label} <span class="quiet">${format(part.value)}</span></li>`)}</ul>
  </div>`;
}
