// The files of a store, each with its state and what can be done with it.
import { html, useMedia, useState } from "../../ui/core.js";
import { Badge } from "../../ui/badge.js";
import { bytesOf, isoOf } from "../../ui/bytes.js";
import { IconButton } from "../../ui/form.js";
import { VirtualList } from "../../ui/list.js";
import { Empty, Failed, Loading } from "../../ui/states.js";
import { Time } from "../../ui/time.js";
import { address, place, setQuery } from "../../router.js";
import { t } from "../../strings.js";
import { attachAgain, RemoveDialog } from "./dialogs.js";

/** @typedef {import("../../types.js").StoreFile} StoreFile */

/** @type {Record<string, "good" | "bad" | "accent" | "">} */
const TONES = { completed: "good", failed: "bad", in_progress: "accent" };

/** @param {{ status: string }} props */
export function FileStatus({ status }) {
  return html`<${Badge} tone=${TONES[status] ?? ""}>${t.knowledge.statuses[status] ?? status}<//>`;
}

/** @param {{ files: import("../../ui/pages.js").Pages<StoreFile>, filtered: boolean, openId: string | null, onChanged: () => void, children: import("../../vendor/htm-preact.js").Child }} props */
export function Files({ files, filtered, openId, onChanged, children }) {
  const narrow = useMedia("(max-width: 760px)");
  const [removing, setRemoving] = useState(/** @type {StoreFile | null} */ (null));
  if (files.error) return html`<div class="fill"><${Failed} error=${files.error} retry=${files.reload} /></div>`;
  if (files.rows.length === 0) {
    if (files.loading) return html`<div class="fill pad"><${Loading} lines=${7} /></div>`;
    if (filtered) return html`<div class="fill"><${Empty} title=${t.knowledge.noFilteredTitle} /></div>`;
    return html`<div class="fill"><${Empty} title=${t.knowledge.noFilesTitle} body=${t.knowledge.noFilesBody}><div class="actions">${children}</div><//></div>`;
  }
  return html`<${VirtualList} label=${t.knowledge.list} rows=${files.rows} total=${files.ended ? files.rows.length : -1} height=${narrow ? 92 : 64} onEnd=${files.more} current=${openId}
      keyOf=${/** @param {StoreFile} file */ (file) => file.id}
      row=${/** @param {StoreFile} file */ (file) => html`<${Row} file=${file} open=${file.id === openId} onRetry=${() => attachAgain(file).then(onChanged)} onRemove=${() => setRemoving(file)} />`} />
    ${removing && html`<${RemoveDialog} file=${removing} onClose=${() => setRemoving(null)} onRemoved=${() => { if (removing.id === openId) setQuery({ file: null, start: null, end: null, page: null, tab: null }); onChanged(); }} />`}`;
}

/** @param {{ file: StoreFile, open: boolean, onRetry: () => void, onRemove: () => void }} props */
function Row({ file, open, onRetry, onRemove }) {
  const query = place.peek().query;
  const name = typeof file.attributes.path === "string" ? file.attributes.path : file.filename;
  return html`<div class="memory file">
    <div class="memory-main">
      <a class="memory-text" data-main href=${address("knowledge", { store: file.vector_store_id, status: query.get("status"), file: file.id })} aria-current=${open ? "true" : null} title=${name}>${name}</a>
      <div class="memory-meta"><${FileStatus} status=${file.status} />
        ${file.last_error ? html`<span class="reason" title=${file.last_error.message}>${file.last_error.message}</span>`
          : html`<span>${file.status === "completed" ? t.knowledge.chunks(file.chunk_count) : file.notes[0] ?? ""}</span><span>${bytesOf(file.bytes)}</span><${Time} at=${isoOf(file.created_at)} />`}</div>
    </div>
    <div class="file-actions">
      ${(file.status === "failed" || file.status === "cancelled") && html`<${IconButton} icon="restore" label=${`${t.retry}: ${file.filename}`} onClick=${onRetry} />`}
      <${IconButton} icon="delete" label=${`${t.remove}: ${file.filename}`} onClick=${onRemove} />
    </div>
  </div>`;
}
