// Knowledge: the vector stores; one of them with its files, uploads and search; a document beside it.
import { html } from "../ui/core.js";
import { usePlace } from "../router.js";
import { Store } from "./knowledge/store.js";
import { Stores } from "./knowledge/stores.js";

export function View() {
  const { query } = usePlace();
  const store = query.get("store");
  return store === null ? html`<${Stores} />` : html`<${Store} key=${store} id=${store} query=${query} />`;
}
