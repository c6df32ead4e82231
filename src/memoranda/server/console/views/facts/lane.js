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
  const { fact, state, before, after } = readAt(chain, moment);
  const { memory } = fact;
  const open = chain.facts.some((one) => one.memory.id === openId);
  const ended = state === "over" || state === "archived";
  /** @param {MouseEvent} event */
  const show = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    setQuery({ id: memory.id }, { replace: openId !== null });
  };
  const text = ended ? html`<s>${memory.content}</s>` : memory.content;
  return html`<div class=${`memory lane ${state}`}><div class="memory-main">
    <div class="memory-line">
      <a class="memory-text" data-main href=${addressWith({ id: memory.id })} aria-current=${open ? "true" : null} onClick=${show}>${text}</a>
      <span class="lane-time">${t.facts.from(dayText(fact.begins), fact.ends === null ? null : dayText(fact.ends))}</span>
    </div>
    <div class="memory-meta">
      ${person && memory.user_id !== null && html`<span class="scope" title=${`user:${memory.user_id}`}>user:${memory.user_id}</span>`}
      ${ended && html`<${Badge}>${state === "archived" || fact.ends === null ? t.facts[state] : t.facts.endedOn(dayText(fact.ends))}<//>`}
      ${state === "notYet" && html`<${Badge}>${t.facts.notYet}<//>`}
      ${before && html`<${Change} says=${t.facts.until(dayText(fact.begins))} old=${true} fact=${before} />`}
      ${after && html`<${Change} says=${t.facts.fromThen(dayText(after.begins))} old=${false} fact=${after} />`}
      ${chain.facts.length > 2 && html`<span>${t.facts.versions(chain.facts.length)}</span>`}
    </div>
    <div class="track" aria-hidden="true">
      ${chain.facts.map((one) => html`<${Span} key=${one.memory.id} fact=${one} first=${first} />`)}
      <span class="needle" style=${{ left: `${place(moment, first)}%` }} />
    </div>
  </div></div>`;
}

/**
 * The version of a chain that holds at a moment, else the latest that had begun; and those before and after it which held for a time.
 * @param {Chain} chain
 * @param {number} moment
 * @returns {{ fact: Fact, state: "holds" | "notYet" | "over" | "archived", before: Fact | undefined, after: Fact | undefined }}
 */
function readAt({ facts }, moment) {
  const valid = facts.filter(({ holds }) => holds);
  const begun = facts.filter((one) => one.begins <= moment);
  const fact = /** @type {Fact} */ (valid[valid.length - 1] ?? begun[begun.length - 1] ?? facts[0]);
  const state = valid.length > 0 ? "holds" : begun.length === 0 ? "notYet" : fact.memory.archived_at === null ? "over" : "archived";
  const held = facts.filter((one) => one === fact || one.ends === null || one.ends > one.begins);
  const at = held.indexOf(fact);
  return { fact, state, before: held[at - 1], after: held[at + 1] };
}

/** What took the place of what, and when; `old` is for the version that ended. @param {{ says: string, old: boolean, fact: Fact }} props */
function Change({ says, old, fact: { memory: { content } } }) {
  return html`<span class="lane-change" title=${`${says}: ${content}`}>${says}: ${old ? html`<s>${content}</s>` : content}</span>`;
}

/** @param {{ fact: Fact, first: number }} props */
function Span({ fact, first }) {
  const left = place(fact.begins, first);
  const right = place(fact.ends ?? Date.now(), first);
  return html`<span class=${`span ${fact.holds ? "valid" : ""}`} style=${{ left: `${left}%`, width: `${Math.max(0, right - left)}%` }} />`;
}
