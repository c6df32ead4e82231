// Memories: list, search as you type, filters, the detail of one, and changes of many.
import { html, useDebounced, useEffect, useHotkey, useMedia, useMemo, useRef, useSignal, useState } from "../ui/core.js";
import { AddMemoryButton, memoriesAdded, useWrites } from "../ui/add_memory.js";
import { EvidenceBadge } from "../ui/badge.js";
import { IconButton, Input } from "../ui/form.js";
import { Icon } from "../ui/icons.js";
import { focusFirst } from "../ui/list.js";
import { Empty, Failed, Loading, NoMatch } from "../ui/states.js";
import { Modes } from "../ui/modes.js";
import { address, addressWith, setQuery, usePlace } from "../router.js";
import { t } from "../strings.js";
import { Bulk } from "./memories/bulk.js";
import { Duplicates } from "./memories/duplicates.js";
import { Detail } from "./memories/detail.js";
import { Filters, selectionOf, wantedFilters } from "./memories/filters.js";
import { ListHead, Rows } from "./memories/rows.js";
import { useMemories } from "./memories/source.js";

/** @typedef {import("../types.js").Memory} Memory */

const PAUSE = 180; // milliseconds without a key before a search begins

export function View() {
  const { query } = usePlace();
  const part = query.get("part") === "duplicates" ? "duplicates" : "list";
  const modes = Object.entries(t.memories.parts).map(([id, label]) => ({ id, label, href: addressWith({ part: id === "list" ? null : id, q: null, id: null }) }));
  const head = html`<h1>${t.memories.title}</h1><${Modes} label=${t.memories.modes} modes=${modes} current=${part} />`;
  return part === "list" ? html`<${List} query=${query}>${head}<//>` : html`<${Duplicates} query=${query}>${head}<//>`;
}

/** @param {{ query: URLSearchParams, children: import("../vendor/htm-preact.js").Child }} props */
function List({ query, children }) {
  const asked = query.get("q") ?? "";
  const [text, setText] = useState(asked);
  const written = useRef(asked);
  const settled = useDebounced(text, PAUSE);
  const narrow = useMedia("(max-width: 760px)");
  const filters = useMemo(() => selectionOf(query), [query.toString()]);
  const order = query.get("order") === "asc" ? "asc" : "desc";
  const source = useMemories(asked, filters, order);
  const added = useSignal(memoriesAdded);
  const addedBefore = useRef(added);
  const [chosen, setChosen] = useState(/** @type {Map<string, Memory>} */ (new Map()));
  const [filtering, setFiltering] = useState(!narrow && wantedFilters(query) > 0);
  const field = useRef(/** @type {HTMLElement | null} */ (null));
  const openId = query.get("id");

  useEffect(() => {
    if (settled !== written.current) {
      written.current = settled;
      setQuery({ q: settled, id: null });
    }
  }, [settled]);
  useEffect(() => {
    if (asked !== written.current) { // the address has changed, by going back for example
      written.current = asked;
      setText(asked);
    }
  }, [asked]);
  useEffect(() => {
    if (added !== addedBefore.current) source.reload();
    addedBefore.current = added;
  }, [added]);
  useEffect(() => setChosen(new Map()), [asked, query.getAll("scope").join(), query.getAll("kind").join()]);
  useHotkey("/", (event) => {
    event.preventDefault();
    field.current?.querySelector("input")?.focus();
  });
  const close = () => {
    setQuery({ id: null });
    /** @type {HTMLElement | null} */ (document.querySelector(".vrow.current [data-main]"))?.focus();
  };
  useHotkey("Escape", () => openId !== null && close());

  /** @param {KeyboardEvent} event */
  const keyed = (event) => {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      focusFirst(".vlist");
    }
  };
  /** @param {Memory} memory @param {boolean} on */
  const choose = (memory, on) => {
    const next = new Map(chosen);
    if (on) next.set(memory.id, memory);
    else next.delete(memory.id);
    setChosen(next);
  };
  const opened = source.rows.find((row) => row.memory.id === openId) ?? null;

  return html`<div class=${`page split ${openId === null ? "" : "with-detail"}`}>
    <section class="list-pane" aria-label=${t.memories.title}>
      <header class="page-head">
        ${children}
        <${Status} source=${source} searching=${asked !== ""} />
      </header>
      <div class="toolbar">
        <div class="search" ref=${field}><${Icon} name="search" />
          <${Input} label=${t.memories.search} bare type="search" value=${text} onInput=${setText} placeholder=${t.memories.search} onKeyDown=${keyed} />
          <kbd title=${t.memories.searchHint} aria-hidden="true">/</kbd>
        </div>
        <span class="add-memory"><${AddMemoryButton} /></span>
        <${IconButton} icon="filter" label=${t.memories.filters} expanded=${filtering} pressed=${wantedFilters(query) > 0} onClick=${() => setFiltering(!filtering)} />
      </div>
      ${filtering && html`<${Filters} query=${query} />`}
      <${Content} source=${source} searching=${asked !== ""} filtered=${wantedFilters(query) > 0}>
        <${ListHead} searching=${source.answer !== null} order=${order} />
        <${Rows} source=${source} query=${asked} chosen=${chosen} onChoose=${choose} openId=${openId} narrow=${narrow} />
      <//>
      ${chosen.size > 0
        ? html`<${Bulk} chosen=${chosen} shown=${source.rows} onChoose=${setChosen} onChanged=${source.reload} />`
        : !narrow && html`<p class="keys quiet" aria-hidden="true">${t.memories.keys}</p>`}
    </section>
    ${openId !== null && html`<${Detail} key=${openId} id=${openId} row=${opened} query=${asked} onClose=${close} onChanged=${source.changed} onDeleted=${source.removed} />`}
  </div>`;
}

/** @param {{ source: import("./memories/source.js").Source, searching: boolean }} props */
function Status({ source, searching }) {
  const { answer, total } = source;
  return html`<div class="status" role="status">
    ${answer && html`<span class="quiet">${t.memories.results(answer.total_count, answer.query_time)}</span>
      <${EvidenceBadge} level=${answer.evidence} probability=${answer.evidence_probability} />
      ${answer.degraded.length > 0 && html`<span class="badge warn">${t.degraded(answer.degraded)}</span>`}`}
    ${!searching && total !== null && html`<span class="quiet">${t.memories.total(total)}</span>`}
  </div>`;
}

/**
 * @param {{ source: import("./memories/source.js").Source, searching: boolean, filtered: boolean, children: import("../vendor/htm-preact.js").Child }} props
 */
function Content({ source, searching, filtered, children }) {
  const writes = useWrites();
  if (source.error) return html`<div class="fill"><${Failed} error=${source.error} retry=${source.reload} /></div>`;
  if (source.rows.length > 0) return children;
  if (source.loading) return html`<div class="fill pad"><${Loading} lines=${9} /></div>`;
  const { noMatchTitle, noMatchBody, clear } = t.memories;
  if (filtered) return html`<div class="fill"><${NoMatch} title=${noMatchTitle} body=${noMatchBody} label=${clear} clear=${() => setQuery(CLEARED)} /></div>`;
  if (searching) return html`<div class="fill"><${Empty} title=${noMatchTitle} body=${noMatchBody} /></div>`;
  return html`<div class="fill"><${Empty} title=${t.memories.emptyTitle} body=${t.memories.emptyBody}><${AddMemoryButton} kind="primary" />${writes && html`<a href=${address("home")}>${t.sample.orLoad}</a>`}<//></div>`;
}

const CLEARED = { scope: null, kind: null, tag: null, source: null, since: null, until: null, archived: null };
