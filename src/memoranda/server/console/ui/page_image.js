// A page of a PDF as an image, with passages marked.
import { html, useEffect, useLoaded } from "./core.js";
import { part, send } from "../api.js";
import { Button } from "./form.js";
import { Failed, Loading } from "./states.js";
import { t } from "../strings.js";

/** @typedef {{ url: string, page: number, pages: number }} Drawn */

const WIDTH = 1000; // pixels, on a screen of the usual density
const MOST = 1500; // characters of a passage in the address

/** True for names of files whose pages can be drawn. @param {string} filename */
export const isPdf = (filename) => filename.toLowerCase().endsWith(".pdf");

/** With `find` the first page from `page` on that has a passage. @param {{ file: string, filename: string, page: number, find?: boolean, passages: string[], onPage: (page: number) => void }} props */
export function PageImage({ file, filename, page: from, find = false, passages, onPage }) {
  const query = { page: from, find: String(find), width: devicePixelRatio > 1 ? 2 * WIDTH : WIDTH, highlight: passages.slice(0, 10).map((one) => [...one].slice(0, MOST).join("")) };
  const loaded = useLoaded(`${file} ${JSON.stringify(query)}`, (abort) => drawn(file, query, abort));
  const url = loaded.data?.url;
  useEffect(() => () => {
    if (url) URL.revokeObjectURL(url);
  }, [url]);
  if (loaded.error) return html`<${Failed} error=${loaded.error} retry=${loaded.reload} />`;
  if (loaded.data === null) return html`<${Loading} lines=${10} />`;
  const { page, pages } = loaded.data;
  return html`<figure class="page-image" aria-busy=${String(loaded.loading)}>
    <figcaption class="actions">
      <${Button} small disabled=${page <= 1} onClick=${() => onPage(page - 1)}>${t.knowledge.previousPage}<//>
      <span role="status">${t.knowledge.pageOf(page, pages)}</span>
      <${Button} small disabled=${page >= pages} onClick=${() => onPage(page + 1)}>${t.knowledge.nextPage}<//>
    </figcaption>
    <img src=${url} alt=${t.knowledge.imageOf(filename, page)} />
  </figure>`;
}

/**
 * @param {string} file
 * @param {import("../api.js").Query} query
 * @param {AbortSignal} abort
 * @returns {Promise<import("../api.js").Result<Drawn>>}
 */
async function drawn(file, query, abort) {
  const sent = await send("GET", `/v1/files/${part(file)}/image`, { query, abort });
  if (!sent.ok) return sent;
  const [page, pages] = ["page", "pages"].map((name) => Number(sent.data.headers.get(`memoranda-${name}`)));
  return { ok: true, data: { url: URL.createObjectURL(await sent.data.blob()), page: page ?? 1, pages: pages ?? 1 } };
}
