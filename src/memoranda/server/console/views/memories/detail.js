// One memory: its text, fields, where it comes from, its versions, and how a search ranked it.
import { html, useEffect, useLoaded, useRef, useState } from "../../ui/core.js";
import { get, part, post } from "../../api.js";
import { Badge, Kind } from "../../ui/badge.js";
import { Button, Copy, IconButton } from "../../ui/form.js";
import { Confirm } from "../../ui/dialog.js";
import { Explained } from "../../ui/score.js";
import { Loaded } from "../../ui/states.js";
import { Pairs } from "../../ui/table.js";
import { Tabs } from "../../ui/tabs.js";
import { Time } from "../../ui/time.js";
import { toast } from "../../ui/toast.js";
import { address, setQuery } from "../../router.js";
import { t } from "../../strings.js";
import { deleteAll, setArchived } from "./changes.js";
import { Editor } from "./editor.js";
import { marked } from "./marked.js";
import { scopeOf } from "./scope.js";

/** @typedef {import("../../types.js").Memory} Memory */

/**
 * @param {{ id: string, row: import("./source.js").Row | null, query: string, onClose: () => void, onChanged: (memory: Memory) => void, onDeleted: (id: string) => void }} props
 */
export function Detail({ id, row, query, onClose, onChanged, onDeleted }) {
  const loaded = useLoaded(id, (abort) => /** @type {Promise<import("../../api.js").Result<Memory>>} */ (get(`/v1/memories/${part(id)}`, { abort })));
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  /** @param {Memory} memory */
  const changed = (memory) => {
    loaded.set(memory);
    onChanged(memory);
  };
  return html`<section class="detail" aria-label=${t.memories.detail}>
    <header class="detail-head">
      <h2 tabIndex=${-1} ref=${heading}>${t.memories.detail}</h2>
      <${IconButton} icon="close" label=${t.close} onClick=${onClose} />
    </header>
    <div class="detail-body">
      <${Loaded} of=${loaded}>${/** @param {Memory} memory */ (memory) => html`<${Shown} memory=${memory} hit=${row?.hit ?? null} query=${query} onChanged=${changed} onReload=${loaded.reload}
        onDeleted=${() => { onClose(); onDeleted(id); }} />`}<//>
    </div>
  </section>`;
}

/** @param {{ memory: Memory, hit: import("../../types.js").Hit | null, query: string, onChanged: (memory: Memory) => void, onReload: () => void, onDeleted: () => void }} props */
function Shown({ memory, hit, query, onChanged, onReload, onDeleted }) {
  const [editing, setEditing] = useState(false);
  const [asking, setAsking] = useState(false);
  const explanation = hit?.explanation ?? null;
  const [tab, setTab] = useState(explanation ? "ranking" : "details");
  if (editing) return html`<${Editor} memory=${memory} onClose=${() => setEditing(false)} onSaved=${onChanged} />`;
  const archived = memory.archived_at !== null;
  const fact = memory.kind === "fact";
  const tabs = [
    { id: "details", label: t.memories.details }, { id: "provenance", label: t.memories.provenance },
    ...(fact ? [{ id: "history", label: t.memories.history }] : []), ...(explanation ? [{ id: "ranking", label: t.memories.ranking }] : []),
  ];
  return html`
    <div class="detail-badges"><${Kind} kind=${memory.kind} />
      ${archived && html`<${Badge} tone="warn">${t.memories.archivedBadge}<//>`}
      ${memory.superseded_by && html`<${Badge}>${t.memories.endedBadge}<//>`}
    </div>
    <div class="content-text">${marked(memory.content, query)}</div>
    ${memory.tags.length > 0 && html`<div class="tags wrap">${memory.tags.map((tag) => html`<a class="tag" key=${tag} href=${address("memories", { tag })}>${tag}</a>`)}</div>`}
    <div class="actions">
      <${Button} small icon="edit" onClick=${() => setEditing(true)}>${t.memories.edit}<//>
      <${Button} small icon=${archived ? "restore" : "archive"} onClick=${() => setArchived([memory], !archived, ([one]) => one && onChanged(one))}>${archived ? t.memories.restore : t.memories.archive}<//>
      ${fact && html`<${Button} small icon="restore" onClick=${() => undo(memory, onReload)}>${t.memories.undoFact}<//>`}
      <span class="spring" />
      <${Button} small kind="danger" icon="delete" onClick=${() => setAsking(true)}>${t.memories.delete}<//>
    </div>
    <${Tabs} label=${t.memories.detail} tabs=${tabs} current=${tab} onChange=${setTab}>
      ${tab === "details" && html`<${Details} memory=${memory} />`}
      ${tab === "provenance" && html`<${Provenance} memory=${memory} />`}
      ${tab === "history" && html`<${History} id=${memory.id} stamp=${memory.updated_at} />`}
      ${tab === "ranking" && explanation && html`<${Explained} score=${/** @type {import("../../types.js").Hit} */ (hit).score} explanation=${explanation} />`}
    <//>
    ${asking && html`<${Confirm} title=${t.memories.deleteTitle(1)} body=${t.memories.deleteBody} action=${t.memories.delete}
      onConfirm=${() => deleteAll([memory], (ids) => ids.length && onDeleted())} onClose=${() => setAsking(false)} />`}`;
}

/** @param {Memory} memory @param {() => void} reload */
async function undo(memory, reload) {
  /** @type {import("../../api.js").Result<{ undone: unknown }>} */
  const result = await post(`/v1/memories/${part(memory.id)}/undo`, {});
  if (!result.ok) toast(result.error.message, { bad: true });
  else {
    toast(result.data.undone === null ? t.memories.nothingToUndo : t.memories.undoneToast);
    reload();
  }
}

/** @param {{ memory: Memory }} props */
function Details({ memory }) {
  const m = t.memories;
  const metadata = Object.keys(memory.metadata).length > 0;
  return html`<${Pairs} pairs=${[
    [m.id, html`<span class="mono id">${memory.id}</span> <${Copy} text=${memory.id} />`],
    [m.scope, html`<a class="mono id" href=${address("memories", { scope: scopeOf(memory) })}>${scopeOf(memory)}</a>`],
    [m.source, memory.source],
    [m.role, memory.role],
    [m.occurred, html`<${Time} exact at=${memory.occurred_at} />`],
    [m.created, html`<${Time} exact at=${memory.created_at} />`],
    [m.updated, html`<${Time} exact at=${memory.updated_at} />`],
    [m.validFrom, memory.valid_from && html`<${Time} exact at=${memory.valid_from} />`],
    [m.invalidAt, memory.invalid_at && html`<${Time} exact at=${memory.invalid_at} />`],
    [m.archivedAt, memory.archived_at && html`<${Time} exact at=${memory.archived_at} />`],
    [m.importance, memory.importance],
    [m.confidence, memory.confidence],
    [m.accessed, m.accessedTimes(memory.access_count)],
  ]} />
  ${metadata && html`<h3>${m.metadata}</h3><pre class="code" tabIndex=${0}>${JSON.stringify(memory.metadata, null, 2)}</pre>`}`;
}

/** @param {{ memory: Memory }} props */
function Provenance({ memory }) {
  const { source_refs: refs, superseded_by: by } = memory;
  if (refs.length === 0 && by === null) return html`<p class="quiet">${t.memories.noProvenance}</p>`;
  return html`
    ${by !== null && html`<h3>${t.memories.supersededBy}</h3><${Reference} id=${by} />`}
    ${refs.length > 0 && html`<h3>${t.memories.sources}</h3>${refs.map((id) => html`<${Reference} key=${id} id=${id} />`)}`}`;
}

/** Another memory that is named; its id alone where it is no memory, or not visible. @param {{ id: string }} props */
function Reference({ id }) {
  const [memory, setMemory] = useState(/** @type {Memory | null} */ (null));
  useEffect(() => {
    const abort = new AbortController();
    /** @type {Promise<import("../../api.js").Result<Memory>>} */
    const asked = get(`/v1/memories/${part(id)}`, { abort: abort.signal });
    asked.then((result) => !abort.signal.aborted && result.ok && setMemory(result.data));
    return () => abort.abort();
  }, [id]);
  if (memory === null) return html`<p class="mono id quiet">${id}</p>`;
  return html`<a class="reference" href=${address("memories", { id })} onClick=${/** @param {MouseEvent} event */ (event) => { event.preventDefault(); setQuery({ id }, { replace: false }); }}>
    <span class="reference-text">${memory.content}</span><span class="quiet"><${Kind} kind=${memory.kind} /> <${Time} at=${memory.occurred_at} /></span>
  </a>`;
}

/** @param {{ id: string, stamp: string }} props */
function History({ id, stamp }) {
  const loaded = useLoaded(`${id} ${stamp}`, (abort) => /** @type {Promise<import("../../api.js").Result<{ data: import("../../types.js").Version[] }>>} */ (get(`/v1/memories/${part(id)}/history`, { abort })));
  return html`<${Loaded} of=${loaded} lines=${3}>${/** @param {{ data: import("../../types.js").Version[] }} answer */ ({ data }) => html`
    <ol class="timeline">${data.map(({ memory, begins, ends, live }) => html`<li key=${memory.id} class=${live ? "live" : ""}>
      <p>${memory.content} ${memory.id === id && html`<${Badge} tone="accent">${t.memories.current}<//>`}</p>
      <p class="quiet"><${Time} at=${begins} /> ${ends === null ? html`· ${t.memories.holds}` : html`– <${Time} at=${ends} />`}</p>
    </li>`)}</ol>
    ${data.length < 2 && html`<p class="quiet">${t.memories.noHistory}</p>`}`}<//>`;
}
