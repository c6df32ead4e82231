// How many memories there are by month: a bar each, which sets the time of the filters.
import { html } from "../../ui/core.js";
import { setQuery } from "../../router.js";
import { t } from "../../strings.js";

const SHOWN = 24;

/** The months from the first to the latest one, at most `SHOWN`, those without memories too. @param {import("../../types.js").FacetValue[]} months latest first */
function whole(months) {
  const counts = new Map(months.map(({ value, count }) => [value, count]));
  const first = months[months.length - 1]?.value ?? "";
  const shown = [];
  for (let value = months[0]?.value ?? ""; shown.length < SHOWN && value >= first && value !== ""; value = before(value)) {
    shown.unshift({ value, count: counts.get(value) ?? 0 });
  }
  return shown;
}

/** The month before one. @param {string} month */
function before(month) {
  const [year, number] = month.split("-").map(Number);
  return new Date(Date.UTC(year ?? 0, (number ?? 1) - 2, 1)).toISOString().slice(0, 7);
}

/** The first day of the month after one, such as `2026-06-01`. @param {string} month */
function after(month) {
  const [year, number] = month.split("-").map(Number);
  return new Date(Date.UTC(year ?? 0, number ?? 0, 1)).toISOString().slice(0, 10);
}

/** @param {{ months: import("../../types.js").FacetValue[], since: string | null, until: string | null }} props latest month first */
export function Months({ months, since, until }) {
  const shown = whole(months);
  if (shown.length < 2) return null;
  const most = Math.max(...shown.map(({ count }) => count));
  return html`<div class="field months" role="group" aria-label=${t.memories.months}>
    <div class="months-label" aria-hidden="true">${t.memories.months}<span>${shown[0]?.value} – ${shown[shown.length - 1]?.value}</span></div>
    <div class="month-bars">${shown.map(({ value, count }) => {
      const chosen = since === `${value}-01` && until === after(value);
      return html`<button type="button" key=${value} title=${t.memories.counted(value, count)} aria-label=${t.memories.counted(value, count)} aria-pressed=${String(chosen)} disabled=${count === 0 && !chosen}
        onClick=${() => setQuery(chosen ? { since: null, until: null } : { since: `${value}-01`, until: after(value) })}>
        <span style=${{ height: count === 0 ? "1px" : `${Math.max(6, (100 * count) / most)}%` }} />
      </button>`;
    })}</div>
  </div>`;
}
