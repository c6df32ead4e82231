// Passages of a store that a search finds, with their scores.
import { html, useLoaded } from "../../ui/core.js";
import { part, post } from "../../api.js";
import { Badge, EvidenceBadge } from "../../ui/badge.js";
import { isPdf } from "../../ui/page_image.js";
import { ScoreBar } from "../../ui/score.js";
import { Empty, Failed, Loading } from "../../ui/states.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";
import { marked } from "../memories/marked.js";

/**
 * @typedef {import("../../types.js").Passage} Passage
 * @typedef {import("../../types.js").PassagePage} PassagePage
 */

const MOST = 20;

/** @param {{ store: string, query: string, open: string | null, at: string | null }} props */
export function Search({ store, query, open, at }) {
  const body = { query, max_num_results: MOST };
  const found = useLoaded(`${store} ${query}`, (abort) => /** @type {Promise<import("../../api.js").Result<PassagePage>>} */ (post(`/v1/vector_stores/${part(store)}/search`, body, { abort })));
  if (found.error) return html`<div class="fill"><${Failed} error=${found.error} retry=${found.reload} /></div>`;
  if (found.data === null) return html`<div class="fill pad"><${Loading} lines=${8} /></div>`;
  const { data, evidence, evidence_probability: probability, degraded } = found.data;
  return html`<div class="hits" aria-busy=${String(found.loading)}>
    <div class="status" role="status"><span class="quiet">${t.knowledge.results(data.length)}</span>
      <${EvidenceBadge} level=${evidence} probability=${probability} />
      ${degraded.length > 0 && html`<${Badge} tone="warn">${t.degraded(degraded)}<//>`}</div>
    ${data.length === 0 ? html`<${Empty} title=${t.knowledge.noMatchTitle} body=${t.knowledge.noMatchBody} />`
      : html`<ol>${data.map((passage) => html`<${Hit} key=${passage.chunk_id} passage=${passage} query=${query} open=${passage.file_id === open && String(passage.start) === at} />`)}</ol>`}
  </div>`;
}

/** @param {{ passage: Passage, query: string, open: boolean }} props */
function Hit({ passage, query, open }) {
  const { vector_store_id: store, file_id: file, start, end, page, heading } = passage;
  return html`<li class=${`hit ${open ? "current" : ""}`}>
    <header><a data-main class="hit-name" href=${address("knowledge", { store, q: query, file, start, end, page: isPdf(passage.filename) ? page : null })} aria-current=${open ? "true" : null}>${passage.filename}</a>
      <span class="quiet hit-place">${[t.knowledge.pages(passage), heading, t.knowledge.chunk(passage.chunk_index)].filter(Boolean).join(" · ")}</span></header>
    <p class="passage-text">${marked(passage.content.map((one) => one.text).join("\n"), query)}</p>
    <div class="hit-bars"><${ScoreBar} compact label=${t.scores.score} value=${passage.score} tone="total" />
      <${ScoreBar} compact label=${t.knowledge.similarity} value=${passage.similarity} tone="vector" /></div>
  </li>`;
}
