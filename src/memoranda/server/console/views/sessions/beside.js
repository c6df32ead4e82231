// What was made of a session: its summary, the facts that rest on it, and the weeks of its channel.
import { html, useLoaded } from "../../ui/core.js";
import { get } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { exported } from "../../ui/export.js";
import { Loaded } from "../../ui/states.js";
import { Time } from "../../ui/time.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";

/**
 * @typedef {import("../../types.js").Session} Session
 * @typedef {import("../../types.js").Memory} Memory
 */

/** @param {{ session: Session }} props */
export function Summary({ session }) {
  const parts = /** @type {("topics" | "decisions" | "open_questions" | "action_items" | "entities")[]} */ (Object.keys(t.sessions.parts));
  return html`<section class="card made"><h3>${t.sessions.summary}</h3>
    ${session.summary === null ? html`<p class="quiet">${t.sessions.noSummary}</p>` : html`
      <p class="summary-text">${session.summary}</p>
      ${parts.filter((name) => session[name].length > 0).map((name) => html`<div key=${name}><h4>${t.sessions.parts[name]}</h4>
        ${name === "topics" || name === "entities"
          ? html`<div class="words">${session[name].map((one) => html`<span class="word" key=${one}>${one}</span>`)}</div>`
          : html`<ul class="points">${session[name].map((one, i) => html`<li key=${i}>${one}</li>`)}</ul>`}</div>`)}
      <p class="quiet made-by"><${Time} at=${session.summary_created_at} /> ${session.summary_model && html`${t.sessions.madeBy} ${session.summary_model}`}
        ${session.summary_id && html` · <a href=${address("memories", { id: session.summary_id })}>${t.sessions.openMemory}</a>`}</p>`}
  </section>`;
}

/** @param {{ session: Session }} props */
export function Facts({ session }) {
  const loaded = useLoaded(`${session.id} ${session.message_count}`, (abort) => factsOf(session, abort));
  return html`<section class="card made"><h3>${t.sessions.facts}</h3>
    <${Loaded} of=${loaded} lines=${2}>${/** @param {Memory[]} facts */ (facts) => facts.length === 0 ? html`<p class="quiet">${t.sessions.noFacts}</p>`
      : html`<ul class="linked">${facts.map((fact) => html`<li key=${fact.id} class=${fact.superseded_by === null ? "" : "ended"}>
          <a href=${address("facts", { who: fact.user_id === null ? null : `user:${fact.user_id}`, id: fact.id })}>${fact.content}</a>
          ${fact.superseded_by !== null && html` <${Badge}>${t.sessions.superseded}<//>`}</li>`)}</ul>`}<//>
  </section>`;
}

/**
 * The facts that rest on messages of a session, superseded ones too.
 * @param {Session} session
 * @param {AbortSignal} abort
 * @returns {Promise<import("../../api.js").Result<Memory[]>>}
 */
async function factsOf(session, abort) {
  /** @type {Memory[]} */
  const facts = [];
  const done = await exported({ kinds: ["fact"], filters: { session_id: session.id } }, abort, (memory) => { facts.push(memory); });
  return done.ok ? { ok: true, data: facts } : done;
}

/** @param {{ channel: string }} props */
export function Rollups({ channel }) {
  const loaded = useLoaded(channel, (abort) => /** @type {Promise<import("../../api.js").Result<import("../../types.js").Page<Memory>>>} */ (
    get("/v1/memories", { query: { kinds: "rollup", scopes: `channel:${channel}`, limit: 12 }, abort })));
  return html`<section class="card made"><h3>${t.sessions.rollups}</h3>
    <${Loaded} of=${loaded} lines=${2}>${/** @param {import("../../types.js").Page<Memory>} page */ ({ data }) => data.length === 0 ? html`<p class="quiet">${t.sessions.noRollups}</p>`
      : html`<ul class="linked">${data.map((row) => html`<li key=${row.id}><a href=${address("memories", { id: row.id })}>${String(row.metadata.week ?? "")} <${Time} at=${row.occurred_at} /></a>
          <p class="clamped">${row.content}</p></li>`)}</ul>`}<//>
  </section>`;
}
