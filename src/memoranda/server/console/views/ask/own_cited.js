// The passage of an uploaded document that an answer cites. The address names the document and its chunk.
import { html, useLoaded } from "../../ui/core.js";
import { get, part } from "../../api.js";
import { IconButton } from "../../ui/form.js";
import { Loaded } from "../../ui/states.js";
import { addressWith } from "../../router.js";
import { t } from "../../strings.js";
import { Cited } from "./cited.js";

/**
 * @template T
 * @typedef {import("../../api.js").Result<T>} Result
 */
/**
 * @typedef {import("../../types.js").VectorStore} VectorStore
 * @typedef {import("../../types.js").Chunk} Chunk
 * @typedef {{ store: string, result: import("../../types.js").FileResult }} Found
 */

const OWN = "upload-ask"; // says in its metadata what made a store

/** The address of a passage. @param {string} file @param {number} chunk */
export const ownCite = (file, chunk) => addressWith({ cite: `${file}.${chunk}` });

/** @param {{ cite: string, onClose: () => void }} props */
export function OwnCited({ cite, onClose }) {
  const at = cite.lastIndexOf(".");
  const loaded = useLoaded(cite, (abort) => find(cite.slice(0, at), Number(cite.slice(at + 1)), abort));
  if (loaded.data !== null) return html`<${Cited} result=${loaded.data.result} stores=${[loaded.data.store]} quotes=${[]} onClose=${onClose} />`;
  return html`<section class="detail document" aria-label=${t.ask.passage}>
    <header class="detail-head"><h2>${t.ask.passage}</h2><${IconButton} icon="close" label=${t.close} onClick=${onClose} /></header>
    <div class="detail-body"><${Loaded} of=${loaded}>${() => null}<//></div>
  </section>`;
}

/**
 * A chunk of a file in the first store of uploaded documents that has it.
 * @param {string} file
 * @param {number} index
 * @param {AbortSignal} abort
 * @returns {Promise<Result<Found>>}
 */
async function find(file, index, abort) {
  /** @type {Result<{ data: VectorStore[] }>} */
  const stores = await get("/v1/vector_stores", { query: { limit: 100 }, abort });
  if (!stores.ok) return stores;
  for (const { id } of stores.data.data.filter(({ metadata }) => metadata.made_by === OWN)) {
    const path = `/v1/vector_stores/${part(id)}/files/${part(file)}`;
    /** @type {Result<{ filename: string }>} */
    const there = await get(path, { abort });
    if (!there.ok && there.error.kind !== "not_found") return there;
    if (!there.ok) continue;
    const chunk = await chunkOf(path, index, abort);
    if (!chunk.ok) return chunk;
    if (chunk.data === null) break;
    const { content, page, last_page, heading } = chunk.data;
    return { ok: true, data: { store: id, result: { file_id: file, filename: there.data.filename, score: 1, text: content, page, last_page, heading, number: index } } };
  }
  return { ok: false, error: { kind: "not_found", status: 404, code: null, param: null, message: t.ask.passageGone } };
}

/** @param {string} path of the file @param {number} index @param {AbortSignal} abort @returns {Promise<Result<Chunk | null>>} */
async function chunkOf(path, index, abort) {
  /** @type {string | undefined} */
  let after;
  for (;;) {
    /** @type {Result<{ data: Chunk[], has_more: boolean }>} */
    const page = await get(`${path}/chunks`, { query: { limit: 100, after }, abort });
    if (!page.ok) return page;
    const found = page.data.data.find((chunk) => chunk.index === index);
    after = page.data.data.at(-1)?.id;
    if (found || !page.data.has_more) return { ok: true, data: found ?? null };
  }
}
