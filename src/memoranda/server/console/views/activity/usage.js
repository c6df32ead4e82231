// Usage: what a tenant spent by day and purpose, and how much of its limits today.
import { html, useLoaded, useMemo } from "../../ui/core.js";
import { get } from "../../api.js";
import { Select } from "../../ui/form.js";
import { Meter } from "../../ui/meter.js";
import { Loaded } from "../../ui/states.js";
import { Table } from "../../ui/table.js";
import { TenantInput } from "../../ui/tenant.js";
import { setQuery } from "../../router.js";
import { t } from "../../strings.js";
import { byDay, byPurpose, COUNTS, toneOf, used, valueOf } from "./spending.js";

/**
 * @typedef {import("../../types.js").UsageReport} UsageReport
 * @typedef {import("./spending.js").Group} Group
 */

const DAY = 86_400_000;
const PERIODS = [7, 30, 90];

/** @param {{ query: URLSearchParams, children: import("../../vendor/htm-preact.js").Child }} props */
export function Usage({ query, children }) {
  const days = PERIODS.find((one) => String(one) === query.get("days")) ?? 30;
  const asked = query.get("measure");
  const tenant = query.get("tenant");
  const since = new Date(Date.now() - (days - 1) * DAY).toISOString().slice(0, 10);
  const loaded = useLoaded(`${since} ${tenant ?? ""}`, (abort) => /** @type {Promise<import("../../api.js").Result<UsageReport>>} */ (get("/v1/usage", { query: { since, tenant }, abort })));
  const measures = loaded.data && loaded.data.cost !== null ? [...COUNTS, /** @type {const} */ ("cost")] : COUNTS;
  const measure = measures.find((one) => one === asked) ?? "tokens";
  return html`<div class="page scrolls">
    <header class="page-head">${children}</header>
    <div class="usage-bar">
      <${TenantInput} tenant=${tenant} />
      <${Select} label=${t.activity.period} value=${String(days)} options=${PERIODS.map((one) => ({ value: String(one), label: t.activity.days(one) }))} onChange=${/** @param {string} value */ (value) => setQuery({ days: value === "30" ? null : value })} />
      <${Select} label=${t.activity.measure} value=${measure} options=${measures.map((value) => ({ value, label: t.activity.measures[value] ?? value }))} onChange=${/** @param {string} value */ (value) => setQuery({ measure: value === "tokens" ? null : value })} />
    </div>
    <${Loaded} of=${loaded} lines=${10}>${/** @param {UsageReport} report */ (report) => html`<${Report} report=${report} measure=${measure} />`}<//>
  </div>`;
}

/** @param {{ report: UsageReport, measure: import("./spending.js").Measure }} props */
function Report({ report, measure }) {
  const days = useMemo(() => byDay(report), [report]);
  const purposes = useMemo(() => byPurpose(report), [report]);
  const money = report.cost === null ? null : report.currency;
  /** @param {number} value */
  const format = (value) => (measure === "cost" ? t.money(value, report.currency) : number(value));
  return html`
    <section class="card panel-card" aria-label=${t.activity.today}><h2>${t.activity.todayOf(report.tenant)}</h2>
      <div class="meters">${Object.entries(used(report)).map(([name, { value, most }]) => html`<${Meter} key=${name} label=${t.activity.limits[name] ?? name} value=${value} most=${most} format=${number}
        says=${most === null ? t.activity.noLimit : t.activity.ofLimit(most)} />`)}</div>
    </section>
    <section class="card panel-card"><h2>${t.activity.byDay(t.activity.measures[measure] ?? measure)}</h2>
      ${report.cost !== null && html`<p class="quiet">${t.activity.costInAll(t.money(report.cost, report.currency))}</p>`}
      ${report.data.length === 0 ? html`<p class="quiet">${t.activity.nothingSpent}</p>` : html`<${Chart} days=${days} measure=${measure} format=${format} purposes=${purposes.filter(({ sum }) => valueOf(sum, measure) > 0).map(({ id }) => id)} />`}</section>
    ${report.data.length > 0 && html`
      <h2 class="table-title">${t.activity.byPurpose}</h2><${Spendings} money=${money} label=${t.activity.byPurpose} first=${t.activity.purpose} rows=${purposes} name=${/** @param {string} id */ (id) => t.activity.purposes[id] ?? id} />
      <h2 class="table-title">${t.activity.dayByDay}</h2><${Spendings} money=${money} label=${t.activity.dayByDay} first=${t.activity.day} rows=${[...days].filter((day) => day.parts.length > 0).reverse()} name=${/** @param {string} id */ (id) => id} />`}`;
}

/** A bar a day, each made of the purposes. @param {{ days: Group[], measure: import("./spending.js").Measure, format: (value: number) => string, purposes: string[] }} props */
function Chart({ days, measure, format, purposes }) {
  const most = Math.max(measure === "cost" ? 1e-6 : 1, ...days.map((day) => valueOf(day.sum, measure)));
  return html`<div class="chart" role="img" aria-label=${t.activity.chart(days.length, format(most))}>
      <span class="chart-most">${format(most)}</span>
      <div class="chart-bars">${days.map((day) => html`<div class="chart-day" key=${day.id} title=${`${day.id}: ${format(valueOf(day.sum, measure))}`}>
        ${purposes.map((purpose) => day.parts.find((one) => one.purpose === purpose)).map((one) => one && html`<span key=${one.purpose} class=${`share part-${toneOf(one.purpose)}`} style=${{ height: `${(100 * valueOf(one, measure)) / most}%` }} />`)}
      </div>`)}</div>
      <div class="chart-ends"><span>${days[0]?.id}</span><span>${days.at(-1)?.id}</span></div>
    </div>
    <ul class="shares-legend">${purposes.map((purpose) => html`<li key=${purpose}><span class=${`dot part-${toneOf(purpose)}`} aria-hidden="true" />${t.activity.purposes[purpose] ?? purpose}</li>`)}</ul>`;
}

/** @param {{ money: string | null, label: string, first: string, rows: Group[], name: (id: string) => string }} props */
function Spendings({ money, label, first, rows, name }) {
  const columns = /** @type {const} */ (["operations", "model_calls", "tokens_in", "tokens_out", "texts_embedded", "tokens_embedded"]);
  return html`<${Table} label=${label} rows=${rows} keyOf=${/** @param {Group} row */ (row) => row.id} columns=${[
    { title: first, cell: /** @param {Group} row */ (row) => name(row.id) },
    ...columns.map((column) => ({ title: t.activity.measures[column] ?? column, number: true, cell: /** @param {Group} row */ (row) => number(row.sum[column]) })),
    ...(money === null ? [] : [{ title: t.activity.measures.cost ?? money, number: true, cell: /** @param {Group} row */ (row) => t.money(row.sum.cost, money) }]),
  ]} />`;
}

const { number } = t;
