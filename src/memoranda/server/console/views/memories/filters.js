// The filters of the list: in the address, and as the API takes them.
import { html, useDebounced, useLoaded } from "../../ui/core.js";
import { momentOf } from "../../ui/days.js";
import { choicesOf, facetsOf } from "../../ui/facets.js";
import { Button, Chips, Input, Select, Switch } from "../../ui/form.js";
import { setQuery } from "../../router.js";
import { t } from "../../strings.js";
import { Months } from "./months.js";

/**
 * @typedef {{ scopes?: string[], kinds?: string[], tags?: string[], source?: string, since?: string, until?: string, include_archived?: boolean }} Selection
 */

const PAUSE = 200; // milliseconds without a change before the server counts
const NAMES = ["scope", "kind", "tag", "source", "since", "until", "archived"];

/** @param {URLSearchParams} query */
export const wantedFilters = (query) => NAMES.filter((name) => query.getAll(name).some((value) => value !== "")).length;

/**
 * The filters in an address as a selection of the API.
 * @param {URLSearchParams} query
 * @returns {Selection}
 */
export function selectionOf(query) {
  /** @type {Selection} */
  const selection = {};
  const [scopes, kinds, tags] = [query.getAll("scope"), query.getAll("kind"), query.getAll("tag")];
  const [source, since, until] = [query.get("source"), momentOf(query.get("since")), momentOf(query.get("until"))];
  if (scopes.length) selection.scopes = scopes;
  if (kinds.length) selection.kinds = kinds;
  if (tags.length) selection.tags = tags;
  if (source) selection.source = source;
  if (since) selection.since = since;
  if (until) selection.until = until;
  if (query.get("archived")) selection.include_archived = true;
  return selection;
}

/** @param {{ query: URLSearchParams, ordered?: boolean }} props `ordered`: with the order of the list */
export function Filters({ query, ordered = true }) {
  const settled = useDebounced(JSON.stringify(selectionOf(query)), PAUSE);
  /** @type {Selection} */
  const selection = JSON.parse(settled);
  const { kinds: kind, ...ofAnyKind } = selection;
  const { since: _since, until: _until, ...ofAnyTime } = selection;
  const facets = useLoaded(settled, (abort) => facetsOf(selection, abort)).data;
  const anyKind = useLoaded(kind === undefined ? null : JSON.stringify(ofAnyKind), (abort) => facetsOf(ofAnyKind, abort)).data ?? facets;
  const timed = selection.since !== undefined || selection.until !== undefined;
  const anyTime = useLoaded(timed ? JSON.stringify(ofAnyTime) : null, (abort) => facetsOf(ofAnyTime, abort)).data ?? facets;
  const numbers = new Map(anyKind?.kinds.map(({ value, count }) => [value, count]));
  const kinds = [
    { value: "", label: t.memories.anyKind },
    ...Object.entries(t.kinds).filter(([one]) => one !== "chunk").map(([value, label]) => ({ value, label: anyKind ? t.memories.counted(label, numbers.get(value) ?? 0) : label })),
  ];
  const orders = [{ value: "", label: t.memories.newest }, { value: "asc", label: t.memories.oldest }];
  return html`<div class="filters" role="group" aria-label=${t.memories.filters}>
    <${Chips} label=${t.memories.scope} values=${query.getAll("scope")} placeholder=${t.memories.scopeHint} list=${choicesOf(facets?.scopes)} onChange=${/** @param {string[]} scope */ (scope) => setQuery({ scope })} />
    <${Select} label=${t.memories.kind} value=${query.get("kind") ?? ""} options=${kinds} onChange=${/** @param {string} kind */ (kind) => setQuery({ kind })} />
    <${Chips} label=${t.memories.tags} values=${query.getAll("tag")} placeholder=${t.memories.tagsHint} list=${choicesOf(facets?.tags)} onChange=${/** @param {string[]} tag */ (tag) => setQuery({ tag })} />
    <${Input} label=${t.memories.source} value=${query.get("source") ?? ""} list=${choicesOf(facets?.sources)} onInput=${/** @param {string} source */ (source) => setQuery({ source })} />
    <${Input} label=${t.memories.since} type="date" value=${query.get("since") ?? ""} onInput=${/** @param {string} since */ (since) => setQuery({ since })} />
    <${Input} label=${t.memories.until} type="date" value=${query.get("until") ?? ""} onInput=${/** @param {string} until */ (until) => setQuery({ until })} />
    ${ordered && html`<${Select} label=${t.memories.order} value=${query.get("order") ?? ""} options=${orders} onChange=${/** @param {string} order */ (order) => setQuery({ order })} />`}
    <${Months} months=${anyTime?.months ?? []} since=${query.get("since")} until=${query.get("until")} />
    <div class="filters-end">
      <${Switch} label=${t.memories.archived} checked=${query.get("archived") !== null} onChange=${/** @param {boolean} on */ (on) => setQuery({ archived: on ? "1" : null })} />
      <${Button} small kind="ghost" inactive=${wantedFilters(query) === 0} onClick=${() => setQuery(Object.fromEntries(NAMES.map((name) => [name, null])))}>${t.memories.clear}<//>
    </div>
  </div>`;
}
