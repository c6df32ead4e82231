// The document of a citation, at the passage that is cited.
import { html, useEffect, useLoaded, useMemo, useRef, useState } from "../../ui/core.js";
import { get, part } from "../../api.js";
import { IconButton } from "../../ui/form.js";
import { Icon } from "../../ui/icons.js";
import { PageImage, isPdf } from "../../ui/page_image.js";
import { DocumentText, placeOf } from "../../ui/passage.js";
import { Loaded } from "../../ui/states.js";
import { Tabs } from "../../ui/tabs.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";

/**
 * @typedef {import("../../types.js").FileResult} FileResult
 * @typedef {{ store: string, text: string }} Found
 */

/** @param {{ result: FileResult, stores: string[], quotes: string[], onClose: () => void }} props */
export function Cited({ result, stores, quotes, onClose }) {
  const loaded = useLoaded(`${stores.join()} ${result.file_id}`, (abort) => find(result.file_id, stores, abort));
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus({ preventScroll: true }), [result]);
  const span = useMemo(() => (loaded.data ? placeOf(loaded.data.text, result.text) : null), [loaded.data, result]);
  const quote = useMemo(() => {
    const text = loaded.data?.text ?? "";
    return quotes.map((one) => placeOf(text, one, span?.[0])).find((one) => one !== null) ?? null;
  }, [loaded.data, span, quotes.join()]);
  /** @param {Found} found */
  const knowledge = ({ store, text }) => address("knowledge", {
    store, file: result.file_id, ...(span ? { start: [...text.slice(0, span[0])].length, end: [...text.slice(0, span[1])].length } : {}), page: isPdf(result.filename) ? result.page : null,
  });
  return html`<section class="detail document" aria-label=${t.ask.passage}>
    <header class="detail-head">
      <h2 tabIndex=${-1} ref=${heading} class="id">${result.filename}</h2><span class="spring" />
      ${loaded.data && html`<a class="icon-button" href=${knowledge(loaded.data)} aria-label=${t.ask.open} title=${t.ask.open}><${Icon} name="knowledge" /></a>`}
      <${IconButton} icon="close" label=${t.close} onClick=${onClose} />
    </header>
    <div class="detail-body"><${Loaded} of=${loaded}>${/** @param {Found} found */ ({ text }) => {
      const asText = html`${span === null && html`<p class="wrong">${t.knowledge.passageMissing}</p><p class="document-text"><mark>${result.text}</mark></p><hr />`}
        <${DocumentText} text=${text} span=${span} quote=${quote} label=${t.knowledge.text} />`;
      if (result.page === null || !isPdf(result.filename)) return asText;
      return html`<${OnPage} key=${result.number} result=${result} page=${result.page} passage=${quote ? text.slice(...quote) : result.text} find=${quote !== null}>${asText}<//>`;
    }}<//></div>
  </section>`;
}

/** The page of a PDF that is cited; its text is beside it. A passage may begin on the page before the quotation. @param {{ result: FileResult, page: number, passage: string, find: boolean, children: import("../../vendor/htm-preact.js").Child }} props */
function OnPage({ result, page, passage, find, children }) {
  const [tab, setTab] = useState("page");
  const [shown, setShown] = useState({ page, find });
  const tabs = [{ id: "page", label: t.knowledge.pageTab }, { id: "text", label: t.knowledge.text }];
  return html`<${Tabs} label=${t.ask.passage} tabs=${tabs} current=${tab} onChange=${setTab}>
    ${tab === "page" ? html`<${PageImage} file=${result.file_id} filename=${result.filename} page=${shown.page} find=${shown.find} passages=${[passage]} otherwise=${children} onPage=${/** @param {number} next */ (next) => setShown({ page: next, find: false })} />` : children}
  <//>`;
}

/**
 * The text of a file in the first of the stores that has it.
 * @param {string} file
 * @param {string[]} stores
 * @param {AbortSignal} abort
 * @returns {Promise<import("../../api.js").Result<Found>>}
 */
async function find(file, stores, abort) {
  for (const store of stores) {
    /** @type {import("../../api.js").Result<import("../../types.js").FileContent>} */
    const result = await get(`/v1/vector_stores/${part(store)}/files/${part(file)}/content`, { abort });
    if (result.ok) return { ok: true, data: { store, text: result.data.data.map((one) => one.text).join("\n") } };
    if (result.error.kind !== "not_found") return result;
  }
  return { ok: false, error: { kind: "not_found", status: 404, code: null, param: null, message: t.ask.elsewhere } };
}
