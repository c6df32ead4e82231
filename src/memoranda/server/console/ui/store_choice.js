// Which vector stores go with a question.
import { html, useEffect, useState } from "./core.js";
import { get } from "../api.js";
import { Checkbox } from "./form.js";
import { t } from "../strings.js";

/** @param {{ chosen: string[], onChange: (ids: string[]) => void }} props */
export function StoreChoice({ chosen, onChange }) {
  const [stores, setStores] = useState(/** @type {import("../types.js").VectorStore[]} */ ([]));
  useEffect(() => {
    const abort = new AbortController();
    /** @type {Promise<import("../api.js").Result<{ data: import("../types.js").VectorStore[] }>>} */
    const asked = get("/v1/vector_stores", { query: { limit: 100 }, abort: abort.signal });
    asked.then((result) => !abort.signal.aborted && result.ok && setStores(result.data.data));
    return () => abort.abort();
  }, []);
  if (stores.length === 0) return html`<span class="quiet">${t.context.noStores}</span>`;
  return html`<fieldset class="stores"><legend>${t.context.stores}</legend>
    ${stores.map(({ id, name }) => html`<span class="choice" key=${id}><${Checkbox} label=${name || id} checked=${chosen.includes(id)}
      onChange=${/** @param {boolean} on */ (on) => onChange(on ? [...chosen, id] : chosen.filter((one) => one !== id))} /><span aria-hidden="true">${name || id}</span></span>`)}
  </fieldset>`;
}
