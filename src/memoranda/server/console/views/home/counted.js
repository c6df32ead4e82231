// What there is: a tile for each kind of content, whose number leads to its list, and parts of it with links of their own.
import { html } from "../../ui/core.js";
import { Icon } from "../../ui/icons.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";
import { filesOf } from "./overview.js";

/**
 * @typedef {import("./overview.js").Overview} Overview
 * @typedef {{ label: string, n: number, href: string, bad?: boolean }} Part
 */

const KINDS = 3; // kinds of memories that the tile names
const SCOPES = 2; // of facts
const STATES = /** @type {const} */ (["failed", "queued", "running"]);

/** @param {{ overview: Overview }} props */
export function Counted({ overview: { facets, facts, stores, sessions, jobs } }) {
  const kinds = facets.ok ? facets.data.kinds : [];
  return html`<ul class="tiles" aria-label=${t.home.counted}>
    <${Tile} icon="memories" label=${t.nav.memories} of=${facets} n=${facets.ok ? facets.data.total : 0} href=${address("memories")} none=${t.home.noMemories}
      parts=${kinds.slice(0, KINDS).map(({ value, count }) => ({ label: t.kinds[value] ?? value, n: count, href: address("memories", { kind: value }) }))} />
    <${Tile} icon="facts" label=${t.facts.title} of=${facts} n=${facts.ok ? facts.data.total : 0} href=${address("facts")} none=${t.home.noFacts}
      parts=${facts.ok ? facts.data.scopes.slice(0, SCOPES).map(({ value, count }) => ({ label: value, n: count, href: address("facts", { who: value }) })) : []} />
    <${Tile} icon="sessions" label=${t.sessions.title} of=${sessions} n=${sessions.ok ? sessions.data.data.length : 0} more=${sessions.ok && sessions.data.has_more} href=${address("sessions")} none=${t.home.noSessions}
      parts=${sessions.ok && !sessions.data.has_more ? statusesOf(sessions.data.data) : []} />
    <${Documents} stores=${stores} />
    ${jobs !== null && html`<${Jobs} jobs=${jobs} />`}
  </ul>`;
}

/**
 * @param {{ icon: string, label: string, of: import("../../api.js").Result<unknown>, n: number, more?: boolean, href: string, parts: Part[], none: string }} props
 * `more`: there are more than `n`. `none` stands in place of the parts where there are none.
 */
function Tile({ icon, label, of, n, more = false, href, parts, none }) {
  const shown = parts.filter((part) => part.n > 0);
  return html`<li class="tile card">
    <a class="tile-main" href=${href}><span class="tile-label"><${Icon} name=${icon} />${label}</span>
      <span class="tile-number">${of.ok ? t.number(n) : "–"}${more && "+"}</span></a>
    ${of.ok ? html`<p class="tile-parts">${shown.length === 0 ? html`<span class="quiet">${n === 0 ? none : ""}</span>`
        : shown.map((part) => html`<a key=${part.label} class=${part.bad ? "bad" : ""} href=${part.href}>${part.label} <span class="tile-count">${t.number(part.n)}</span></a>`)}</p>`
      : html`<p class="wrong" role="alert">${of.error.message}</p>`}
  </li>`;
}

/** @param {import("../../types.js").Session[]} rows @returns {Part[]} */
const statusesOf = (rows) => Object.entries(t.sessions.statuses).map(([status, label]) => ({
  label, n: rows.filter((row) => row.status === status).length, href: address("sessions", { status }), bad: status === "failed",
}));

/** @param {{ stores: Overview["stores"] }} props */
function Documents({ stores }) {
  const all = stores.ok ? stores.data.data : [];
  /** The page of the files with a status: of the store that has them, or all stores. @param {import("./overview.js").FileStatus} status */
  const at = (status) => {
    const having = all.filter((store) => store.file_counts[status] > 0);
    return having.length === 1 ? address("knowledge", { store: having[0]?.id, status }) : address("knowledge");
  };
  /** @type {Part[]} */
  const parts = [
    { label: t.home.stores(all.length), n: all.length, href: address("knowledge") },
    { label: t.knowledge.statuses.in_progress ?? "", n: filesOf(all, "in_progress"), href: at("in_progress") },
    { label: t.knowledge.statuses.failed ?? "", n: filesOf(all, "failed"), href: at("failed"), bad: true },
  ];
  return html`<${Tile} icon="knowledge" label=${t.home.documents} of=${stores} n=${filesOf(all, "total")} more=${stores.ok && stores.data.has_more} parts=${parts} none=${t.home.noDocuments}
    href=${all.length === 1 ? address("knowledge", { store: all[0]?.id }) : address("knowledge")} />`;
}

/** @param {{ jobs: NonNullable<Overview["jobs"]> }} props */
function Jobs({ jobs }) {
  const all = jobs.ok ? jobs.data.data : [];
  const parts = STATES.map((state) => ({
    label: t.admin.states[state] ?? state, n: all.filter((job) => job.state === state).length, href: address("admin", { part: "jobs", state }), bad: state === "failed",
  }));
  return html`<${Tile} icon="activity" label=${t.home.jobs} of=${jobs} n=${parts.reduce((n, part) => n + part.n, 0)} parts=${parts} none=${t.home.noJobs} href=${address("admin", { part: "jobs" })} />`;
}
