// Admin: health, holdings and limits of tenants, switches, jobs, archives. Keys without the admin role are told so.
import { html, useLoaded } from "../ui/core.js";
import { get } from "../api.js";
import { Modes } from "../ui/modes.js";
import { Loaded } from "../ui/states.js";
import { address, usePlace } from "../router.js";
import { t } from "../strings.js";
import { Archive } from "./admin/archive.js";
import { Jobs } from "./admin/jobs.js";
import { Limits } from "./admin/limits.js";
import { Overview } from "./admin/overview.js";
import { SwitchesPart } from "./admin/switches.js";

/** @type {Record<string, typeof Overview>} */
const PARTS = { overview: Overview, limits: Limits, switches: SwitchesPart, jobs: Jobs, archive: Archive };

const OF_ANY = ["limits", "switches"]; // the parts that the operator sees of any tenant; the API has the others of the key's own

export function View() {
  const { query } = usePlace();
  const part = query.get("part") ?? "overview";
  const tenant = query.get("tenant");
  const allowed = useLoaded(tenant ?? "", (abort) => get("/v1/admin/usage", { query: { tenant }, abort }));
  const Part = PARTS[part] ?? Overview;
  const modes = Object.entries(t.admin.parts).map(([id, label]) => ({
    id, label, href: address("admin", { part: id === "overview" ? null : id, tenant: OF_ANY.includes(id) ? tenant : null }),
  }));
  const head = html`<h1>${t.admin.title}</h1>${!allowed.error && html`<${Modes} label=${t.admin.modes} modes=${modes} current=${part in PARTS ? part : "overview"} />`}`;
  if (allowed.error) return html`<div class="page scrolls"><header class="page-head">${head}</header><${Loaded} of=${allowed}>${() => null}<//></div>`;
  return html`<${Part} query=${query}>${head}<//>`;
}
