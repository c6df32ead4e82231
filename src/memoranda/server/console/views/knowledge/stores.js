// All vector stores that the key may see.
import { html, useState } from "../../ui/core.js";
import { Badge } from "../../ui/badge.js";
import { bytesOf, isoOf } from "../../ui/bytes.js";
import { Button } from "../../ui/form.js";
import { VirtualList } from "../../ui/list.js";
import { usePages } from "../../ui/pages.js";
import { Empty, Failed, Loading } from "../../ui/states.js";
import { Time } from "../../ui/time.js";
import { address, go } from "../../router.js";
import { t } from "../../strings.js";
import { NameDialog } from "./dialogs.js";

/** @typedef {import("../../types.js").VectorStore} VectorStore */

export function Stores() {
  /** @type {import("../../ui/pages.js").Pages<VectorStore>} */
  const stores = usePages("/v1/vector_stores");
  const [naming, setNaming] = useState(false);
  const create = html`<${Button} kind="primary" icon="add" onClick=${() => setNaming(true)}>${t.knowledge.create}<//>`;
  return html`<div class="page list-pane">
    <header class="page-head"><h1>${t.knowledge.title}</h1><span class="spring" />${stores.rows.length > 0 && create}</header>
    <${Content} stores=${stores}>${create}<//>
    ${naming && html`<${NameDialog} onClose=${() => setNaming(false)} onSaved=${/** @param {VectorStore} store */ (store) => go(address("knowledge", { store: store.id }))} />`}
  </div>`;
}

/** @param {{ stores: import("../../ui/pages.js").Pages<VectorStore>, children: import("../../vendor/htm-preact.js").Child }} props */
function Content({ stores, children }) {
  if (stores.error) return html`<div class="fill"><${Failed} error=${stores.error} retry=${stores.reload} /></div>`;
  if (stores.rows.length > 0) {
    return html`<${VirtualList} label=${t.knowledge.stores} rows=${stores.rows} height=${72} keyOf=${/** @param {VectorStore} store */ (store) => store.id}
      total=${stores.ended ? stores.rows.length : -1} onEnd=${stores.more} row=${/** @param {VectorStore} store */ (store) => html`<${Row} store=${store} />`} />`;
  }
  if (stores.loading) return html`<div class="fill pad"><${Loading} lines=${6} /></div>`;
  return html`<div class="fill"><${Empty} title=${t.knowledge.emptyTitle} body=${t.knowledge.emptyBody}>${children}<//></div>`;
}

/** @param {{ store: VectorStore }} props */
function Row({ store }) {
  return html`<div class="memory file">
    <div class="memory-main">
      <a class="memory-text" data-main href=${address("knowledge", { store: store.id })}>${store.name || store.id}</a>
      <div class="memory-meta"><${Counts} counts=${store.file_counts} /><span>${bytesOf(store.usage_bytes)}</span>
        <span class="scope" title=${store.model}>${store.model}</span>
        <span>${t.knowledge.active} <${Time} at=${isoOf(store.last_active_at)} /></span></div>
    </div>
  </div>`;
}

/** How many files there are in each state. @param {{ counts: VectorStore["file_counts"] }} props */
export function Counts({ counts }) {
  return html`<span class="counts"><span>${t.knowledge.files(counts.total)}</span>
    ${counts.in_progress > 0 && html`<${Badge} tone="accent">${t.knowledge.indexing(counts.in_progress)}<//>`}
    ${counts.failed > 0 && html`<${Badge} tone="bad">${t.knowledge.failures(counts.failed)}<//>`}
    ${counts.cancelled > 0 && html`<${Badge}>${t.knowledge.cancelled(counts.cancelled)}<//>`}</span>`;
}
