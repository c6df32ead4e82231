// The chunks of a document, in the order of its text: what a search finds and a model reads.
import { html } from "../../ui/core.js";
import { Button } from "../../ui/form.js";
import { usePages } from "../../ui/pages.js";
import { Failed, Loading } from "../../ui/states.js";
import { addressWith } from "../../router.js";
import { t } from "../../strings.js";

/** @typedef {import("../../types.js").Chunk} Chunk */

/** @param {{ path: string, count: number, pdf: boolean }} props */
export function Chunks({ path, count, pdf }) {
  /** @type {import("../../ui/pages.js").Pages<Chunk>} */
  const pages = usePages(`${path}/chunks`);
  if (pages.error) return html`<${Failed} error=${pages.error} retry=${pages.reload} />`;
  if (pages.rows.length === 0) return pages.loading ? html`<${Loading} />` : html`<p class="quiet">${t.knowledge.noText}</p>`;
  return html`<ol class="pieces">${pages.rows.map((chunk) => html`<${One} key=${chunk.id} chunk=${chunk} pdf=${pdf} />`)}</ol>
    ${!pages.ended && html`<div class="actions"><${Button} onClick=${pages.more}>${t.knowledge.moreChunks} (${t.number(count - pages.rows.length)})<//></div>`}`;
}

/** @param {{ chunk: Chunk, pdf: boolean }} props */
function One({ chunk, pdf }) {
  return html`<li class="piece">
    <header><strong>${t.knowledge.chunk(chunk.index)}</strong>
      ${chunk.heading && html`<span>${chunk.heading}</span>`}
      ${chunk.page !== null && html`<span class="quiet">${t.knowledge.pages(chunk)}</span>`}
      <span class="spring" /><span class="quiet">${t.tokens(chunk.tokens)}</span></header>
    <p class="piece-text">${chunk.content}</p>
    <footer><a href=${addressWith({ tab: chunk.page === null ? null : "text", start: chunk.start, end: chunk.end })}>${t.knowledge.showInText}</a>
      ${pdf && chunk.page !== null && html`<a href=${addressWith({ tab: "page", page: chunk.page, start: chunk.start, end: chunk.end })}>${t.knowledge.showOnPage}</a>`}</footer>
  </li>`;
}
