// Whether the server answers in full, and what it holds.
import { html, useLoaded } from "../../ui/core.js";
import { get } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { bytesOf } from "../../ui/bytes.js";
import { Button } from "../../ui/form.js";
import { Loaded } from "../../ui/states.js";
import { Pairs, Table } from "../../ui/table.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";

/**
 * @typedef {import("../../types.js").Stats} Stats
 * @typedef {import("../../types.js").Missing} Missing
 * @typedef {{ ready: boolean, checks: Record<string, string> }} Readiness
 */

const STORED = { archived: 1 }; // what the statistics count: archived memories, too

/** A number that leads to the list of what it counts. @param {number} n @param {string} href */
const linked = (n, href) => (n === 0 ? t.number(n) : html`<a href=${href}>${t.number(n)}</a>`);

/** @param {{ query: URLSearchParams, children: import("../../vendor/htm-preact.js").Child }} props */
export function Overview({ children }) {
  const loaded = useLoaded("stats", (abort) => /** @type {Promise<import("../../api.js").Result<Stats>>} */ (get("/v1/memories/stats", { abort })));
  const missing = useLoaded("missing", (abort) => /** @type {Promise<import("../../api.js").Result<Missing>>} */ (get("/v1/backfills", { abort })));
  return html`<div class="page scrolls">
    <header class="page-head">${children}</header>
    <${Health} />
    <${Loaded} of=${loaded} lines=${8}>${/** @param {Stats} stats */ (stats) => html`
      <div class="panels">
        <section class="card panel-card"><h2>${t.admin.memories}</h2>
          <${Pairs} pairs=${[
            [t.admin.memories, linked(stats.memories, address("memories", STORED))], [t.admin.characters, t.number(stats.characters)], [t.admin.chunks, linked(stats.chunks, address("knowledge"))],
            ...Object.entries(stats.by_kind).map(([kind, n]) => [t.kinds[kind] ?? kind, linked(n, address("memories", { kind, ...STORED }))]),
          ]} /></section>
        <section class="card panel-card"><h2>${t.admin.indexes}</h2>
          <${Pairs} pairs=${[
            [t.admin.model, html`<span class="mono id">${stats.model}</span>${stats.embedder_note && html`<p class="hint">${stats.embedder_note}</p>`}`], [t.admin.dimension, t.number(stats.dimension)],
            [t.admin.vectors, t.admin.ofRows(stats.indexed_vectors, stats.vectors)], [t.admin.words, t.number(stats.indexed_words)],
            [t.admin.unembedded, t.number(stats.unembedded)], [t.admin.behind, stats.behind.length ? stats.behind.map((side) => html`<${Badge} tone="warn">${side}<//> `) : t.none],
          ]} />
          <h3>${t.admin.missing}</h3>
          <${Loaded} of=${missing} lines=${2}>${/** @param {Missing} found */ (found) => html`<${Pairs} pairs=${/** @type {("unembedded" | "summaries" | "query_logs")[]} */ (["unembedded", "summaries", "query_logs"]).map((name) => [t.admin.missingOf[name] ?? name, t.number(found[name])])} />`}<//></section>
      </div>
      <${Folder} stats=${stats} />`}<//>
  </div>`;
}

function Health() {
  const ready = useLoaded("ready", (abort) => /** @type {Promise<import("../../api.js").Result<Readiness>>} */ (get("/readyz", { abort })));
  const alive = useLoaded("alive", (abort) => /** @type {Promise<import("../../api.js").Result<{ version: string }>>} */ (get("/healthz", { abort })));
  return html`<section class="card panel-card health" aria-label=${t.admin.health}>
    <h2>${t.admin.health}</h2>
    ${ready.error ? html`<${Badge} tone="bad">${t.admin.notReady}<//><span class="wrong" role="alert">${ready.error.message}</span>`
      : ready.data && html`<${Badge} tone="good">${t.admin.ready}<//>${Object.entries(ready.data.checks).map(([side, state]) => html`<span class="quiet" key=${side}>${t.admin.sides[side] ?? side}: ${state}</span>`)}`}
    <span class="spring" />
    ${alive.data && html`<span class="quiet">${t.admin.version(alive.data.version)}</span>`}
    <${Button} small busy=${ready.loading} onClick=${ready.reload}>${t.admin.check}<//>
  </section>`;
}

/** What is about the whole folder; only the operator is told. @param {{ stats: Stats }} props */
function Folder({ stats }) {
  const sides = /** @type {const} */ (["database", "index", "words"]).filter((side) => stats[side] !== null);
  if (sides.length === 0) return null;
  const rows = sides.flatMap((side) => Object.entries(stats[side] ?? {}).map(([name, value]) => ({ side, name, value })));
  return html`<h2 class="table-title">${t.admin.folder}</h2>
    <${Table} label=${t.admin.folder} rows=${rows} keyOf=${/** @param {typeof rows[number]} row */ (row) => `${row.side} ${row.name}`} columns=${[
      { title: t.admin.part, cell: /** @param {typeof rows[number]} row */ (row) => t.admin.folderSides[row.side] },
      { title: t.admin.property, cell: /** @param {typeof rows[number]} row */ (row) => html`<span class="mono">${row.name}</span>` },
      { title: t.admin.value, wide: true, cell: /** @param {typeof rows[number]} row */ (row) => shown(row.name, row.value) },
    ]} />`;
}

/** @param {string} name @param {unknown} value */
function shown(name, value) {
  if (typeof value === "number") return name === "bytes" || name.endsWith("_bytes") ? bytesOf(value) : t.number(value);
  return typeof value === "object" ? html`<span class="mono id">${JSON.stringify(value)}</span>` : String(value);
}
