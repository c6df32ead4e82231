// A page of a PDF as an image, with passages marked.
import { html, useEffect, useLoaded } from "./core.js";
import { bodyOf, part, send } from "../api.js";
import { Button } from "./form.js";
import { Failed, Loading } from "./states.js";
import { t } from "../strings.js";

/** @typedef {{ url: string, page: number, pages: number }} Drawn */

const WIDTH = 1000; // pixels, on a screen of the usual density
const PARTS = 4, MOST = 1000; // what the API takes: passages, and characters of each

/** True for names of files whose pages can be drawn. @param {string} filename */
export const isPdf = (filename) => filename.toLowerCase().endsWith(".pdf");

/** With `find` the first page from `page` on that has a passage. @param {{ file: string, filename: string, page: number, find?: boolean, passages: string[], onPage: (page: number) => void, otherwise?: import("../vendor/htm-preact.js").Child }} props `otherwise` is shown where the page cannot be drawn */
export function PageImage({ file, filename, page: from, find = false, passages, onPage, otherwise = null }) {
  const query = { page: from, find: String(find), width: devicePixelRatio > 1 ? 2 * WIDTH : WIDTH, highlight: passages.flatMap(partsOf).slice(0, PARTS) };
  const loaded = useLoaded(`${file} ${JSON.stringify(query)}`, (abort) => drawn(file, query, abort));
  const url = loaded.data?.url;
  useEffect(() => () => {
    if (url) URL.revokeObjectURL(url);
  }, [url]);
  if (loaded.error) return html`<${Failed} error=${loaded.error} retry=${loaded.reload} />${otherwise}`;
  if (loaded.data === null) return html`<${Loading} lines=${10} />`;
  const { page, pages } = loaded.data;
  return html`<figure class="page-image" aria-busy=${String(loaded.loading)}>
    <figcaption class="actions">
      <${Button} small inactive=${page <= 1} onClick=${() => onPage(page - 1)}>${t.knowledge.previousPage}<//>
      <span role="status">${t.knowledge.pageOf(page, pages)}</span>
      <${Button} small inactive=${page >= pages} onClick=${() => onPage(page + 1)}>${t.knowledge.nextPage}<//>
    </figcaption>
    <img src=${url} alt=${t.knowledge.imageOf(filename, page)} />
  </figure>`;
}

/** A passage in parts that end with a sentence, a line or a word. @param {string} passage @returns {string[]} */
function partsOf(passage) {
  const letters = [...passage];
  if (letters.length <= MOST) return [passage];
  const first = letters.slice(0, MOST).join("");
  const end = [". ", "\n", " "].map((mark) => first.lastIndexOf(mark)).find((at) => at > 0) ?? first.length - 1;
  return [first.slice(0, end + 1), ...partsOf(passage.slice(end + 1))];
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
  const image = await bodyOf(sent.data);
  return image.ok ? { ok: true, data: { url: URL.createObjectURL(image.data), page: page ?? 1, pages: pages ?? 1 } } : image;
}
