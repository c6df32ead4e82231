// The day as of which facts are shown: a slider from the first fact to today.
import { html, useId } from "../../ui/core.js";
import { Button } from "../../ui/form.js";
import { dayOf } from "../../ui/time.js";
import { setQuery } from "../../router.js";
import { t } from "../../strings.js";

const DAY = 86_400_000;

/** A day as it is read. @param {number} moment milliseconds since 1970 */
export const dayText = (moment) => dayOf(new Date(moment), true);

/** The moment of an `at` of the address: the end of its day; now without one, or when it is no day. @param {string | null} at */
export function momentAt(at) {
  const day = at === null ? Number.NaN : Date.parse(`${at}T00:00:00Z`);
  return Number.isNaN(day) ? Date.now() : day + DAY - 1;
}

/** @param {{ first: number, at: string | null }} props */
export function Slider({ first, at }) {
  const id = useId();
  const today = Math.floor(Date.now() / DAY);
  const least = Math.min(Math.floor(first / DAY), today - 1);
  const value = Math.min(today, Math.floor(momentAt(at) / DAY));
  const says = at === null ? t.facts.today : dayText(value * DAY);
  /** @param {InputEvent} event */
  const moved = (event) => {
    const day = Number(/** @type {HTMLInputElement} */ (event.currentTarget).value);
    setQuery({ at: day >= today ? null : new Date(day * DAY).toISOString().slice(0, 10) });
  };
  return html`<div class="field as-of">
    <label for=${id}>${t.facts.asOf} <output for=${id}>${says}</output></label>
    <div class="as-of-row">
      <input id=${id} type="range" min=${least} max=${today} step=${1} value=${value} aria-valuetext=${says} onInput=${moved} />
      <${Button} small inactive=${at === null} onClick=${() => setQuery({ at: null })}>${t.facts.today}<//>
    </div>
  </div>`;
}
