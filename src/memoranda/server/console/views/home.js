// Home: what there is, how the server answers, and what to do next. Every number leads to the page that lists it.
import { html, useLoaded, useSignal } from "../ui/core.js";
import { memoriesAdded, useWrites } from "../ui/add_memory.js";
import { usePoll } from "../ui/pages.js";
import { Loaded } from "../ui/states.js";
import { session } from "../session.js";
import { t } from "../strings.js";
import { Answering } from "./home/answering.js";
import { Counted } from "./home/counted.js";
import { Next } from "./home/next.js";
import { busy, isEmpty, overviewOf } from "./home/overview.js";

export function View() {
  const current = useSignal(session);
  const admin = current?.role === "admin";
  const writes = useWrites();
  const loaded = useLoaded(`home ${useSignal(memoriesAdded)}`, (abort) => overviewOf(admin, abort));
  usePoll(loaded.data !== null && busy(loaded.data), async () => {
    if (!loaded.loading) loaded.reload();
  });
  return html`<div class="page scrolls home">
    <header class="page-head"><h1>${t.home.title}</h1></header>
    <${Loaded} of=${loaded} lines=${10}>${/** @param {import("./home/overview.js").Overview} overview */ (overview) => html`
      <div class=${`home-body ${isEmpty(overview) ? "begin" : ""}`}>
        ${isEmpty(overview) && html`<p class="quiet">${t.home.emptyLead}</p>`}
        <${Counted} overview=${overview} />
        <div class="home-columns">
          <${Next} overview=${overview} writes=${writes} />
          <${Answering} overview=${overview} />
        </div>
      </div>`}<//>
  </div>`;
}
