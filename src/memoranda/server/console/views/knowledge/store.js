// One store: its state, search, uploads and files; an opened document beside them.
import { html, useDebounced, useEffect, useHotkey, useLoaded, useRef, useSignal, useState } from "../../ui/core.js";
import { get, part, remove } from "../../api.js";
import { bytesOf } from "../../ui/bytes.js";
import { Button, IconButton, Input, Select } from "../../ui/form.js";
import { Confirm } from "../../ui/dialog.js";
import { Icon } from "../../ui/icons.js";
import { focusFirst } from "../../ui/list.js";
import { usePages, usePoll } from "../../ui/pages.js";
import { Loaded } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { address, go, setQuery } from "../../router.js";
import { t } from "../../strings.js";
import { NameDialog } from "./dialogs.js";
import { Document } from "./document.js";
import { DropTarget, Pickers } from "./drop.js";
import { Files } from "./files.js";
import { Progress } from "./progress.js";
import { Search } from "./search.js";
import { Counts } from "./stores.js";
import { enqueue, uploadsChanged } from "./uploads.js";

/**
 * @typedef {import("../../types.js").VectorStore} VectorStore
 * @typedef {import("../../types.js").StoreFile} StoreFile
 */

const PAUSE = 300; // milliseconds without a key before a search begins

/** @param {{ id: string, query: URLSearchParams }} props */
export function Store({ id, query }) {
  const path = `/v1/vector_stores/${part(id)}`;
  const store = useLoaded(id, (abort) => /** @type {Promise<import("../../api.js").Result<VectorStore>>} */ (get(path, { abort })));
  const fileId = query.get("file");
  const close = () => {
    setQuery({ file: null, start: null, end: null, passage: null, page: null, tab: null });
    /** @type {HTMLElement | null} */ (document.querySelector(".vrow.current [data-main], .hit.current [data-main]"))?.focus();
  };
  useHotkey("Escape", () => fileId !== null && close());
  if (store.error || store.data === null) {
    return html`<div class="page list-pane"><header class="page-head"><${Back} /><h1>${t.knowledge.title}</h1></header>
      <div class="fill pad"><${Loaded} of=${store}>${() => null}<//></div></div>`;
  }
  return html`<${DropTarget} className=${`page split ${fileId === null ? "" : "with-detail"}`} onFiles=${/** @param {import("./drop.js").Found[]} files */ (files) => take(id, files)}>
    <${Shown} store=${store.data} path=${path} query=${query} loading=${store.loading} reload=${store.reload} />
    ${fileId !== null && html`<${Document} key=${fileId} store=${id} file=${fileId} query=${query} onClose=${close} />`}
  <//>`;
}

/** @param {string} id @param {import("./drop.js").Found[]} files */
function take(id, files) {
  if (files.length === 0) toast(t.knowledge.ignored);
  else enqueue(id, files);
}

function Back() {
  return html`<a class="icon-button" href=${address("knowledge")} aria-label=${t.knowledge.back} title=${t.knowledge.back}><${Icon} name="back" /></a>`;
}

/** @param {{ store: VectorStore, path: string, query: URLSearchParams, loading: boolean, reload: () => void }} props */
function Shown({ store, path, query, loading, reload }) {
  const asked = query.get("q") ?? "";
  const status = query.get("status") ?? "";
  /** @type {import("../../ui/pages.js").Pages<StoreFile>} */
  const files = usePages(`${path}/files`, { filter: status });
  const changes = useSignal(uploadsChanged);
  const changed = useFresh(store, loading, reload, files.refresh);
  useEffect(() => {
    if (changes > 0) changed();
  }, [changes]);
  return html`<section class="list-pane" aria-label=${store.name || store.id}>
    <header class="page-head store-head"><${Back} /><h1 class="id">${store.name || store.id}</h1>
      <div class="status quiet" role="status"><${Counts} store=${store} /><span>${bytesOf(store.usage_bytes)}</span></div>
      <span class="spring" /><${Actions} store=${store} onChanged=${reload} /></header>
    <${Toolbar} asked=${asked} status=${status} store=${store.id} />
    <${Progress} store=${store.id} />
    ${asked ? html`<${Search} store=${store.id} query=${asked} open=${query.get("file")} at=${query.get("start")} />`
      : html`<${Files} files=${files} filtered=${status !== ""} openId=${query.get("file")} onChanged=${changed}><${Pickers} onFiles=${/** @param {import("./drop.js").Found[]} found */ (found) => take(store.id, found)} /><//>`}
  </section>`;
}

/**
 * Keeps a store and its files up to date while files are in progress, and answers what is to be called after a change.
 * The files are fetched after the counts: once the counts have none in progress, the list shows how each file ended.
 * @param {VectorStore} store
 * @param {boolean} loading
 * @param {() => void} reload fetches the store
 * @param {() => void} refresh fetches its files
 */
function useFresh(store, loading, reload, refresh) {
  const before = useRef(store);
  const changed = useRef(false); // since the request for the store that is under way
  useEffect(() => {
    if (store !== before.current) refresh();
    before.current = store;
    if (changed.current) reload();
    changed.current = false;
  }, [store]);
  usePoll(store.file_counts.in_progress > 0, async () => {
    if (!loading) reload();
  });
  return () => {
    if (loading) changed.current = true; // many files at once would abort every request
    else reload();
  };
}

/** @param {{ asked: string, status: string, store: string }} props */
function Toolbar({ asked, status, store }) {
  const [text, setText] = useState(asked);
  const written = useRef(asked);
  const settled = useDebounced(text, PAUSE);
  const field = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (settled !== written.current) {
      written.current = settled;
      setQuery({ q: settled, file: null, start: null, end: null, page: null, tab: null });
    }
  }, [settled]);
  useEffect(() => {
    if (asked !== written.current) { // the address has changed, by going back for example
      written.current = asked;
      setText(asked);
    }
  }, [asked]);
  useHotkey("/", (event) => {
    event.preventDefault();
    field.current?.querySelector("input")?.focus();
  });
  /** @param {KeyboardEvent} event */
  const keyed = (event) => {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      focusFirst(".vlist");
    }
  };
  return html`<div class="toolbar store-bar">
    <div class="search" ref=${field}><${Icon} name="search" />
      <${Input} label=${t.knowledge.search} bare type="search" value=${text} onInput=${setText} placeholder=${t.knowledge.search} onKeyDown=${keyed} />
      <kbd title=${t.knowledge.searchHint} aria-hidden="true">/</kbd>
    </div>
    <${Select} label=${t.knowledge.filter} bare value=${status} onChange=${/** @param {string} value */ (value) => setQuery({ status: value, q: null })}
      options=${[{ value: "", label: t.knowledge.anyStatus }, ...Object.entries(t.knowledge.statuses).map(([value, label]) => ({ value, label }))]} />
    <${Pickers} onFiles=${/** @param {import("./drop.js").Found[]} found */ (found) => take(store, found)} />
  </div>`;
}

/** @param {{ store: VectorStore, onChanged: () => void }} props */
function Actions({ store, onChanged }) {
  const [open, setOpen] = useState(/** @type {"" | "name" | "delete"} */ (""));
  const name = store.name || store.id;
  const erase = async () => {
    const result = await remove(`/v1/vector_stores/${part(store.id)}`);
    if (!result.ok) toast(result.error.message, { bad: true });
    else {
      toast(t.knowledge.deletedToast(name));
      go(address("knowledge"));
    }
  };
  return html`<div class="store-actions"><a class="button small" href=${address("ask", { store: store.id })}><${Icon} name="ask" />${t.nav.ask}</a>
    <${Button} small icon="edit" onClick=${() => setOpen("name")}>${t.knowledge.rename}<//>
    <${IconButton} icon="delete" label=${t.knowledge.deleteTitle} onClick=${() => setOpen("delete")} /></div>
    ${open === "name" && html`<${NameDialog} store=${store} onClose=${() => setOpen("")} onSaved=${() => { toast(t.knowledge.savedToast); onChanged(); }} />`}
    ${open === "delete" && html`<${Confirm} title=${t.knowledge.deleteTitle} body=${t.knowledge.deleteBody(name, store.file_counts.total)} action=${t.knowledge.delete}
      onConfirm=${erase} onClose=${() => setOpen("")} />`}`;
}
