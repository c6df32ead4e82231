// What the server measured since it started: its routes, the stages of a request, and how long changes held the writer.
import { html, useLoaded, useMemo } from "../../ui/core.js";
import { send } from "../../api.js";
import { durationOf } from "../../ui/duration.js";
import { Select, Switch } from "../../ui/form.js";
import { usePoll } from "../../ui/pages.js";
import { Loaded } from "../../ui/states.js";
import { Table } from "../../ui/table.js";
import { setQuery } from "../../router.js";
import { t } from "../../strings.js";
import { routesOf, samplesOf, timingsOf } from "./metrics.js";

/** @typedef {import("./metrics.js").Timing} Timing */

/** @type {Record<string, (a: Timing, b: Timing) => number>} */
const ORDERS = { "": (a, b) => b.sum - a.sum, slow: (a, b) => b.mean - a.mean, count: (a, b) => b.count - a.count, failed: (a, b) => b.failed - a.failed };

/** @param {AbortSignal} abort @returns {Promise<import("../../api.js").Result<string>>} */
async function metrics(abort) {
  const sent = await send("GET", "/metrics", { abort });
  return sent.ok ? { ok: true, data: await sent.data.text() } : sent;
}

/** @param {{ query: URLSearchParams, children: import("../../vendor/htm-preact.js").Child }} props */
export function ServerTimes({ query, children }) {
  const loaded = useLoaded("metrics", metrics);
  const live = query.get("live") === "1";
  usePoll(live && loaded.error === null, async () => { if (!document.hidden) loaded.reload(); }, 2000);
  return html`<div class="page scrolls">
    <header class="page-head">${children}</header>
    <${Loaded} of=${loaded} lines=${10}>${/** @param {string} text */ (text) => html`<${Measured} text=${text} order=${query.get("order") ?? ""} live=${live} />`}<//>
  </div>`;
}

/** @param {{ text: string, order: string, live: boolean }} props */
function Measured({ text, order, live }) {
  const samples = useMemo(() => samplesOf(text), [text]);
  const routes = useMemo(() => routesOf(samples).sort(ORDERS[order] ?? ORDERS[""]), [samples, order]);
  const stages = useMemo(() => timingsOf(samples, "memoranda_stage_seconds", "stage"), [samples]);
  const writes = useMemo(() => timingsOf(samples, "memoranda_write_seconds", "kind"), [samples]);
  return html`<p class="quiet lead">${t.activity.serverLead}</p>
    <div class="usage-bar">
      <${Select} label=${t.activity.order} value=${order} options=${Object.entries(t.activity.orders).map(([value, label]) => ({ value, label }))} onChange=${/** @param {string} value */ (value) => setQuery({ order: value })} />
      <${Switch} label=${t.activity.live} checked=${live} onChange=${/** @param {boolean} on */ (on) => setQuery({ live: on ? "1" : null })} />
    </div>
    <h2 class="table-title">${t.activity.routes}</h2><${Timings} label=${t.activity.routes} first=${t.activity.route} rows=${routes} failures />
    <h2 class="table-title">${t.activity.stagesTitle}</h2><${Timings} label=${t.activity.stagesTitle} first=${t.activity.stage} rows=${stages} names=${t.activity.serverStages} />
    <h2 class="table-title">${t.activity.writes}</h2><${Timings} label=${t.activity.writes} first=${t.activity.package} rows=${writes} />`;
}

/** @param {{ label: string, first: string, rows: Timing[], names?: Record<string, string>, failures?: boolean }} props */
function Timings({ label, first, rows, names = {}, failures = false }) {
  return html`<${Table} label=${label} rows=${rows} keyOf=${/** @param {Timing} row */ (row) => row.label} columns=${[
    { title: first, wide: true, cell: /** @param {Timing} row */ (row) => names[row.label] ?? html`<span class="mono id">${row.label}</span>` },
    { title: t.activity.count, number: true, cell: /** @param {Timing} row */ (row) => t.number(row.count) },
    ...(failures ? [{ title: t.activity.failed, number: true, cell: /** @param {Timing} row */ (row) => row.failed > 0 ? html`<span class="wrong">${t.number(row.failed)}</span>` : "0" }] : []),
    { title: t.activity.mean, number: true, cell: /** @param {Timing} row */ (row) => durationOf(row.mean) },
    { title: t.activity.p95, number: true, cell: /** @param {Timing} row */ (row) => row.p95 === null ? t.activity.beyond : `≤ ${durationOf(row.p95)}` },
    { title: t.activity.total, number: true, cell: /** @param {Timing} row */ (row) => durationOf(row.sum) },
  ]} />`;
}
