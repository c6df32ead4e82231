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
      <div class="memory-meta"><${Counts} store=${store} /><span>${bytesOf(store.usage_bytes)}</span>
        <span class="scope" title=${store.model}>${store.model}</span>
        <span>${t.knowledge.active} <${Time} at=${isoOf(store.last_active_at)} /></span></div>
    </div>
  </div>`;
}

/** How many files of a store there are in each state; each number leads to these files. @param {{ store: VectorStore }} props */
export function Counts({ store: { id, file_counts: counts } }) {
  /** @param {string} status */
  const at = (status) => address("knowledge", { store: id, status });
  return html`<span class="counts"><a href=${at("")}>${t.knowledge.files(counts.total)}</a>
    ${counts.in_progress > 0 && html`<a href=${at("in_progress")}><${Badge} tone="accent">${t.knowledge.indexing(counts.in_progress)}<//></a>`}
    ${counts.failed > 0 && html`<a href=${at("failed")}><${Badge} tone="bad">${t.knowledge.failures(counts.failed)}<//></a>`}
    ${counts.cancelled > 0 && html`<a href=${at("cancelled")}><${Badge}>${t.knowledge.cancelled(counts.cancelled)}<//></a>`}</span>`;
}
