// One line of the list for each memory; with a search also its scores.
import { html } from "../../ui/core.js";
import { Badge, Kind, Tags } from "../../ui/badge.js";
import { Checkbox } from "../../ui/form.js";
import { VirtualList } from "../../ui/list.js";
import { HitScores, RankShift } from "../../ui/score.js";
import { speakerOf } from "../../ui/speaker.js";
import { Time } from "../../ui/time.js";
import { addressWith, setQuery } from "../../router.js";
import { t } from "../../strings.js";
import { beginning, marked } from "./marked.js";
import { scopeOf } from "./scope.js";

/** @typedef {import("../../types.js").Memory} Memory */

const APART = 60_000; // milliseconds between what happened and its storing from which both are shown

/** By what the list is sorted, and which date its rows have. @param {{ searching: boolean, order: "asc" | "desc" }} props */
export function ListHead({ searching, order }) {
  const by = searching ? t.memories.byScore : order === "asc" ? t.memories.oldest : t.memories.newest;
  return html`<div class=${`list-head ${searching ? "scored" : ""}`}><span>${by}</span><span>${searching ? t.memories.happened : t.memories.stored}</span></div>`;
}

/**
 * @param {{ source: import("./source.js").Source, query: string, chosen: Map<string, Memory>, onChoose: (memory: Memory, on: boolean) => void, openId: string | null, narrow: boolean }} props
 */
export function Rows({ source, query, chosen, onChoose, openId, narrow }) {
  const searching = source.answer !== null;
  /** @param {KeyboardEvent} event @param {import("./source.js").Row} row */
  const keyed = (event, { memory }) => {
    if (event.key === " " && event.target instanceof HTMLAnchorElement) {
      event.preventDefault();
      onChoose(memory, !chosen.has(memory.id));
    }
  };
  return html`<${VirtualList} label=${t.memories.list} rows=${source.rows} total=${source.total} height=${narrow ? (searching ? 140 : 92) : searching ? 80 : 64}
    keyOf=${/** @param {import("./source.js").Row} row */ (row) => row.memory.id} current=${openId} onEnd=${source.more} onKey=${keyed}
    row=${/** @param {import("./source.js").Row} row */ (row) => html`<${Row} row=${row} query=${query} chosen=${chosen.has(row.memory.id)} onChoose=${onChoose} open=${row.memory.id === openId} />`} />`;
}

/** @param {{ row: import("./source.js").Row, query: string, chosen: boolean, onChoose: (memory: Memory, on: boolean) => void, open: boolean }} props */
function Row({ row: { memory, hit }, query, chosen, onChoose, open }) {
  const first = memory.content.slice(0, 80);
  const [who, scope] = [speakerOf(memory), scopeOf(memory)];
  const apart = Math.abs(Date.parse(memory.created_at) - Date.parse(memory.occurred_at));
  /** @param {MouseEvent} event */
  const show = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    setQuery({ id: memory.id }, { replace: open });
  };
  return html`<div class=${`memory ${hit ? "" : "unscored"} ${chosen ? "chosen" : ""} ${memory.archived_at ? "archived" : ""}`}>
    <${Checkbox} label=${t.memories.select(first)} checked=${chosen} onChange=${/** @param {boolean} on */ (on) => onChoose(memory, on)} />
    <div class="memory-main">
      <div class="memory-line">
        <a class="memory-text" data-main href=${addressWith({ id: memory.id })} aria-current=${open ? "true" : null} onClick=${show}>${marked(beginning(memory, hit), query)}</a>
        <${Time} at=${hit ? memory.occurred_at : memory.created_at} />
      </div>
      <div class="memory-meta">
        <${Kind} kind=${memory.kind} />
        ${who !== null && !scope.endsWith(`:${who}`) && html`<span class="speaker" title=${t.memories.saidBy(who, memory.role)}>${who}</span>`}
        ${memory.archived_at && html`<${Badge} tone="warn">${t.memories.archivedBadge}<//>`}
        ${memory.superseded_by && html`<${Badge}>${t.memories.endedBadge}<//>`}
        ${!hit && apart > APART && html`<span>${t.memories.happenedAt} <${Time} at=${memory.occurred_at} /></span>`}
        <span class="scope" title=${scope}>${scope}</span>
        <${Tags} tags=${memory.tags} />
        ${hit?.explanation && html`<${RankShift} explanation=${hit.explanation} />`}
      </div>
    </div>
    ${hit && html`<${HitScores} score=${hit.score} explanation=${hit.explanation} />`}
  </div>`;
}
