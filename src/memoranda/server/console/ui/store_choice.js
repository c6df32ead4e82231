// Which vector stores go with a question: a chip for each, and what of them is not indexed yet.
import { html, useLoaded } from "./core.js";
import { get } from "../api.js";
import { Icon } from "./icons.js";
import { usePoll } from "./pages.js";
import { address } from "../router.js";
import { t } from "../strings.js";

/** @typedef {import("../types.js").VectorStore} VectorStore */

/** @param {{ chosen: string[], onChange: (ids: string[]) => void }} props */
export function StoreChoice({ chosen, onChange }) {
  const loaded = useLoaded("stores", (abort) => /** @type {Promise<import("../api.js").Result<{ data: VectorStore[] }>>} */ (get("/v1/vector_stores", { query: { limit: 100 }, abort })));
  const stores = loaded.data?.data ?? [];
  const waiting = stores.filter(({ id }) => chosen.includes(id)).reduce((n, { file_counts }) => n + file_counts.in_progress, 0);
  usePoll(waiting > 0, async () => {
    if (!loaded.loading) loaded.reload();
  });
  if (loaded.data === null) return loaded.error && html`<span class="wrong" role="alert">${loaded.error.message}</span>`;
  if (stores.length === 0) return html`<span class="quiet">${t.context.noStores}: <a href=${address("knowledge")}>${t.storeChoice.upload}</a></span>`;
  return html`<fieldset class="stores"><legend>${t.context.stores}</legend>
    ${stores.map(({ id, name }) => html`<label class="toggle" key=${id}><input type="checkbox" checked=${chosen.includes(id)}
      onChange=${/** @param {Event} event */ (event) => onChange(/** @type {HTMLInputElement} */ (event.currentTarget).checked ? [...chosen, id] : chosen.filter((one) => one !== id))} /><${Icon} name=${chosen.includes(id) ? "check" : "add"} /><span>${name || id}</span></label>`)}
    <p class="pending" role="status">${waiting > 0 && t.storeChoice.waiting(waiting)}</p>
  </fieldset>`;
}
