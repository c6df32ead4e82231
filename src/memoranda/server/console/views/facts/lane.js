// One chain of versions: the text that is valid on the day, and a bar for the time of each version.
import { html } from "../../ui/core.js";
import { Badge } from "../../ui/badge.js";
import { addressWith, setQuery } from "../../router.js";
import { t } from "../../strings.js";
import { dayText, momentAt } from "./slider.js";

/**
 * @typedef {import("./source.js").Chain} Chain
 * @typedef {import("./source.js").Fact} Fact
 */

/** The share of the time from the first fact until now, as a percentage. @param {number} moment @param {number} first */
function place(moment, first) {
  const now = Date.now();
  return Math.max(0, Math.min(100, (100 * (moment - first)) / Math.max(1, now - first)));
}

/** @param {{ first: number, at: string | null }} props */
export function Axis({ first, at }) {
  const marks = [first, (first + Date.now()) / 2, Date.now()];
  return html`<div class="axis" aria-hidden="true"><div class="axis-track">
    ${marks.map((moment, i) => html`<span class=${`tick tick-${i}`} key=${i}>${i === 2 ? t.facts.today : dayText(moment)}</span>`)}
    <span class="needle" style=${{ left: `${place(momentAt(at), first)}%` }} />
  </div></div>`;
}

/** @param {{ chain: Chain, first: number, at: string | null, openId: string | null, person: boolean }} props */
export function Lane({ chain, first, at, openId, person }) {
  const moment = momentAt(at);
  const valid = chain.facts.filter(({ holds }) => holds);
  const begun = chain.facts.filter((fact) => fact.begins <= moment);
  const fact = /** @type {Fact} */ (valid[valid.length - 1] ?? begun[begun.length - 1] ?? chain.facts[0]);
  const { memory } = fact;
  const state = valid.length > 0 ? "holds" : begun.length === 0 ? "notYet" : memory.archived_at === null ? "over" : "archived";
  const open = chain.facts.some((one) => one.memory.id === openId);
  /** @param {MouseEvent} event */
  const show = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    setQuery({ id: memory.id }, { replace: openId !== null });
  };
  return html`<div class=${`memory lane ${state}`}><div class="memory-main">
    <a class="memory-text" data-main href=${addressWith({ id: memory.id })} aria-current=${open ? "true" : null} onClick=${show}>${memory.content}</a>
    <div class="memory-meta">
      <${Badge} tone=${state === "holds" ? "good" : ""}>${t.facts[state]}<//>
      <span>${t.facts.from(dayText(fact.begins), fact.ends === null ? null : dayText(fact.ends))}</span>
      ${chain.facts.length > 1 && html`<span>${t.facts.versions(chain.facts.length)}</span>`}
      ${person && memory.user_id !== null && html`<span class="scope">user:${memory.user_id}</span>`}
    </div>
    <div class="track" aria-hidden="true">
      ${chain.facts.map((one) => html`<${Span} key=${one.memory.id} fact=${one} first=${first} />`)}
      <span class="needle" style=${{ left: `${place(moment, first)}%` }} />
    </div>
  </div></div>`;
}

/** @param {{ fact: Fact, first: number }} props */
function Span({ fact, first }) {
  const left = place(fact.begins, first);
  const right = place(fact.ends ?? Date.now(), first);
  return html`<span class=${`span ${fact.holds ? "valid" : ""}`} style=${{ left: `${left}%`, width: `${Math.max(0, right - left)}%` }} />`;
}
