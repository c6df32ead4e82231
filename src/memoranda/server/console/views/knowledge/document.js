// One document of a store: its text with a passage marked, and its fields.
import { html, useEffect, useLoaded, useMemo, useRef } from "../../ui/core.js";
import { get, part } from "../../api.js";
import { bytesOf, isoOf } from "../../ui/bytes.js";
import { Copy, IconButton } from "../../ui/form.js";
import { Icon } from "../../ui/icons.js";
import { PageImage, isPdf } from "../../ui/page_image.js";
import { DocumentText, unitsOf } from "../../ui/passage.js";
import { usePoll } from "../../ui/pages.js";
import { Loaded, Loading } from "../../ui/states.js";
import { Pairs } from "../../ui/table.js";
import { Tabs } from "../../ui/tabs.js";
import { Time } from "../../ui/time.js";
import { setQuery } from "../../router.js";
import { t } from "../../strings.js";
import { Chunks } from "./chunks.js";
import { FileStatus } from "./files.js";

/**
 * @typedef {import("../../types.js").StoreFile} StoreFile
 * @typedef {import("../../types.js").FileContent} FileContent
 */

/** @param {{ store: string, file: string, query: URLSearchParams, onClose: () => void }} props */
export function Document({ store, file, query, onClose }) {
  const path = `/v1/vector_stores/${part(store)}/files/${part(file)}`;
  const loaded = useLoaded(path, (abort) => /** @type {Promise<import("../../api.js").Result<StoreFile>>} */ (get(path, { abort })));
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  usePoll(loaded.data?.status === "in_progress", async () => loaded.reload());
  const pdf = loaded.data !== null && isPdf(loaded.data.filename);
  const page = numberOf(query.get("page"));
  const tabs = [
    ...(pdf ? [{ id: "page", label: t.knowledge.pageTab }] : []),
    { id: "text", label: t.knowledge.text },
    { id: "chunks", label: t.knowledge.chunksTab, ...(loaded.data ? { count: loaded.data.chunk_count } : {}) },
    { id: "details", label: t.knowledge.details },
  ];
  const tab = tabs.find(({ id }) => id === query.get("tab"))?.id ?? (pdf && page !== null ? "page" : "text");
  return html`<section class="detail document" aria-label=${t.knowledge.document}>
    <header class="detail-head">
      <h2 tabIndex=${-1} ref=${heading} class="id">${loaded.data?.filename ?? t.knowledge.document}</h2>
      <span class="spring" />
      <a class="icon-button" href=${`/v1/files/${part(file)}/content`} download aria-label=${t.knowledge.download} title=${t.knowledge.download}><${Icon} name="download" /></a>
      <${IconButton} icon="close" label=${t.close} onClick=${onClose} />
    </header>
    <div class="detail-body"><${Loaded} of=${loaded}>${/** @param {StoreFile} one */ (one) => html`
      <${Tabs} label=${t.knowledge.document} tabs=${tabs} current=${tab} onChange=${/** @param {string} id */ (id) => setQuery({ tab: id === "text" && page === null ? null : id })}>
        ${tab === "page" && pdf ? html`<${Page} path=${path} file=${one} page=${page ?? 1} start=${numberOf(query.get("start"))} end=${numberOf(query.get("end"))} />`
          : tab === "text" ? html`<${Text} key=${one.status} path=${path} status=${one.status} reason=${one.last_error?.message ?? null} start=${numberOf(query.get("start"))} end=${numberOf(query.get("end"))} />`
          : tab === "chunks" ? html`<${Chunks} key=${one.status} path=${path} count=${one.chunk_count} pdf=${pdf} />` : html`<${Details} file=${one} />`}
      <//>`}<//></div>
  </section>`;
}

/** @param {string | null} text */
const numberOf = (text) => (text === null || !/^\d+$/.test(text) ? null : Number(text));

/** A page with the passage of the address marked. @param {{ path: string, file: StoreFile, page: number, start: number | null, end: number | null }} props */
function Page({ path, file, page, start, end }) {
  const marks = start !== null && end !== null;
  const loaded = useLoaded(marks ? path : null, (abort) => /** @type {Promise<import("../../api.js").Result<FileContent>>} */ (get(`${path}/content`, { abort })));
  const passages = useMemo(() => {
    const text = loaded.data?.data.map((one) => one.text).join("\n") ?? "";
    return text === "" || !marks ? [] : [text.slice(unitsOf(text, start), unitsOf(text, end))];
  }, [loaded.data, start, end]);
  if (marks && loaded.loading) return html`<${Loading} lines=${10} />`;
  return html`<${PageImage} file=${file.id} filename=${file.filename} page=${page} passages=${passages} onPage=${/** @param {number} next */ (next) => setQuery({ tab: "page", page: next })} />`;
}

/** @param {{ path: string, status: string, reason: string | null, start: number | null, end: number | null }} props */
function Text({ path, status, reason, start, end }) {
  const loaded = useLoaded(path, (abort) => /** @type {Promise<import("../../api.js").Result<FileContent>>} */ (get(`${path}/content`, { abort })));
  const text = useMemo(() => loaded.data?.data.map((one) => one.text).join("\n") ?? "", [loaded.data]);
  const span = useMemo(() => (start === null || end === null ? null : [unitsOf(text, start), unitsOf(text, end)]), [text, start, end]);
  return html`<${Loaded} of=${loaded}>${() => text === ""
    ? html`<p class="quiet">${t.knowledge.noText} <${FileStatus} status=${status} /></p>${reason && html`<p class="wrong">${reason}</p>`}`
    : html`<${DocumentText} text=${text} span=${span} label=${t.knowledge.text} />`}<//>`;
}

/** @param {{ file: StoreFile }} props */
function Details({ file }) {
  const k = t.knowledge;
  return html`<${Pairs} pairs=${[
    [k.id, html`<span class="mono id">${file.id}</span> <${Copy} text=${file.id} />`],
    [k.status, html`<${FileStatus} status=${file.status} />`],
    [k.reason, file.last_error?.message],
    [k.titleOf, file.title],
    [k.size, bytesOf(file.bytes)],
    [k.chunkCount, file.chunk_count],
    [k.added, html`<${Time} exact at=${isoOf(file.created_at)} />`],
    [k.notes, file.notes.join(" ")],
    ...Object.entries(file.attributes).map(([name, value]) => /** @type {[string, string]} */ ([`${k.attributes}: ${name}`, String(value)])),
  ]} />`;
}
