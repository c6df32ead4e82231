// What a tenant holds and spent today, under its quotas and limits; the operator changes them.
import { html, useLoaded, useState } from "../../ui/core.js";
import { get } from "../../api.js";
import { bytesOf } from "../../ui/bytes.js";
import { Button } from "../../ui/form.js";
import { Meter } from "../../ui/meter.js";
import { Loaded } from "../../ui/states.js";
import { TenantInput, useOperator } from "../../ui/tenant.js";
import { toast } from "../../ui/toast.js";
import { address } from "../../router.js";
import { session } from "../../session.js";
import { t } from "../../strings.js";
import { used } from "../activity/spending.js";
import { LimitsDialog } from "./limits_dialog.js";

/**
 * @typedef {import("../../types.js").Quotas} Quotas
 * @typedef {import("../../types.js").Holdings} Holdings
 * @typedef {import("../../types.js").UsageReport} UsageReport
 * @typedef {{ quotas: Quotas, holdings: Holdings, report: UsageReport }} TenantUsage
 */

const BYTES = ["max_storage_bytes", "max_file_bytes"];
/** The pages that list what the key's own tenant holds. */
const LISTS = { files: address("knowledge"), chunks: address("knowledge"), memories: address("memories", { archived: 1 }) };

/**
 * @param {string | null} tenant @param {AbortSignal} abort
 * @returns {Promise<import("../../api.js").Result<TenantUsage>>}
 */
async function usageOf(tenant, abort) {
  const since = new Date().toISOString().slice(0, 10);
  const [quotas, holdings, report] = await Promise.all([
    /** @type {Promise<import("../../api.js").Result<Quotas>>} */ (get("/v1/admin/quotas", { query: { tenant }, abort })),
    /** @type {Promise<import("../../api.js").Result<Holdings>>} */ (get("/v1/admin/usage", { query: { tenant }, abort })),
    /** @type {Promise<import("../../api.js").Result<UsageReport>>} */ (get("/v1/usage", { query: { tenant, since }, abort })),
  ]);
  if (!quotas.ok) return quotas;
  if (!holdings.ok) return holdings;
  if (!report.ok) return report;
  return { ok: true, data: { quotas: quotas.data, holdings: holdings.data, report: report.data } };
}

/** @param {{ query: URLSearchParams, children: import("../../vendor/htm-preact.js").Child }} props */
export function Limits({ query, children }) {
  const tenant = query.get("tenant");
  const loaded = useLoaded(tenant ?? "", (abort) => usageOf(tenant, abort));
  return html`<div class="page scrolls">
    <header class="page-head">${children}</header>
    <div class="usage-bar"><${TenantInput} tenant=${tenant} /></div>
    <${Loaded} of=${loaded} lines=${8}>${/** @param {TenantUsage} usage */ (usage) => html`<${Both} usage=${usage} onChanged=${loaded.reload} />`}<//>
  </div>`;
}

/** @param {{ usage: TenantUsage, onChanged: () => void }} props */
function Both({ usage: { quotas, holdings, report }, onChanged }) {
  const operator = useOperator();
  const [editing, setEditing] = useState(/** @type {"" | "quotas" | "spending"} */ (""));
  const { tenant } = quotas;
  const bounds = Object.fromEntries(Object.keys(t.admin.limits).map((name) => [name, Number(quotas[/** @type {keyof Quotas} */ (name)])]));
  const { number } = t;
  /** @param {string} name @param {number} n */
  const sized = (name, n) => (BYTES.includes(name) ? bytesOf(n) : number(n));
  /** @type {Record<string, number>} */
  const values = { max_storage_bytes: holdings.storage_bytes, max_stores: holdings.stores };
  const saved = () => {
    toast(t.admin.savedToast(tenant));
    onChanged();
  };
  const edit = (/** @type {"quotas" | "spending"} */ what) => (operator ? html`<${Button} small icon="edit" onClick=${() => setEditing(what)}>${t.admin.change}<//>` : html`<span class="quiet">${t.admin.operatorOnly}</span>`);
  return html`
    <section class="card panel-card"><header class="panel-head"><h2>${t.admin.quotas(tenant)}</h2>${edit("quotas")}</header>
      <div class="meters">${Object.entries(values).map(([name, value]) => html`<${Meter} key=${name} label=${t.admin.limits[name] ?? name} value=${value} most=${bounds[name] ?? null}
        format=${/** @param {number} n */ (n) => sized(name, n)} says=${t.admin.of(sized(name, bounds[name] ?? 0))} />`)}</div>
      <dl class="facts-list">
        ${Object.entries(bounds).filter(([name]) => !(name in values)).map(([name, value]) => html`<div key=${name}><dt>${t.admin.limits[name] ?? name}</dt><dd>${sized(name, value)}</dd></div>`)}
        ${/** @type {const} */ (["files", "chunks", "memories"]).map((name) => html`<div key=${name}><dt>${t.admin.holds[name]}</dt><dd>${tenant === session.peek()?.tenant ? html`<a href=${LISTS[name]}>${number(holdings[name])}</a>` : number(holdings[name])}</dd></div>`)}
      </dl></section>
    <section class="card panel-card"><header class="panel-head"><h2>${t.admin.spending(tenant)}</h2>${edit("spending")}</header>
      <div class="meters">${Object.entries(used(report)).map(([name, { value, most }]) => html`<${Meter} key=${name} label=${t.activity.limits[name] ?? name} value=${value} most=${most} format=${number}
        says=${most === null ? t.activity.noLimit : t.activity.ofLimit(most)} />`)}</div></section>
    ${editing === "quotas" && html`<${LimitsDialog} title=${t.admin.quotas(tenant)} path="/v1/admin/quotas" tenant=${tenant} names=${t.admin.limits} values=${bounds} unset=${t.admin.byDefault} onClose=${() => setEditing("")} onSaved=${saved} />`}
    ${editing === "spending" && html`<${LimitsDialog} title=${t.admin.spending(tenant)} path="/v1/admin/spending" tenant=${tenant} names=${t.activity.limits} values=${report.limits} unset=${t.admin.byDefault} onClose=${() => setEditing("")} onSaved=${saved} />`}`;
}
