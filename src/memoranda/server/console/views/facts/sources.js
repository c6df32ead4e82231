// The messages that a fact rests on: as memories, else as they stand in the log of its session.
import { html, useLoaded } from "../../ui/core.js";
import { get, part } from "../../api.js";
import { Avatar, speakerOf } from "../../ui/speaker.js";
import { Loaded } from "../../ui/states.js";
import { Time } from "../../ui/time.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";

/**
 * @typedef {import("../../types.js").Memory} Memory
 * @typedef {{ id: string, text: string | null, who: string, at: string | null, session: string | null }} Source
 */

/** @param {{ memory: Memory }} props */
export function Sources({ memory }) {
  const loaded = useLoaded(`${memory.id} ${memory.source_refs.join()}`, (abort) => sourcesOf(memory, abort));
  if (memory.source_refs.length === 0) return html`<p class="quiet">${t.facts.noSources}</p>`;
  return html`<${Loaded} of=${loaded} lines=${2}>${/** @param {Source[]} sources */ (sources) => sources.map((source) => html`<${Quoted} key=${source.id} source=${source} />`)}<//>`;
}

/** @param {{ source: Source }} props */
function Quoted({ source }) {
  if (source.text === null) return html`<p class="quiet">${t.facts.goneSource} <span class="mono id">${source.id}</span></p>`;
  const to = source.session === null ? address("memories", { id: source.id }) : address("sessions", { id: source.session, message: source.id });
  return html`<a class="reference quoted" href=${to}><${Avatar} name=${source.who} />
    <span><span class="reference-text">${source.text}</span><span class="quiet"><span>${source.who}</span><${Time} at=${source.at} exact /></span></span></a>`;
}

/**
 * @param {Memory} fact
 * @param {AbortSignal} abort
 * @returns {Promise<import("../../api.js").Result<Source[]>>}
 */
async function sourcesOf(fact, abort) {
  const session = fact.metadata.session_id;
  const logged = typeof session === "string" ? await log(session, abort) : new Map();
  const sources = await Promise.all(fact.source_refs.map(async (id) => logged.get(id) ?? (await remembered(id, abort))));
  return { ok: true, data: sources };
}

/** The messages of a session, by id; none when it is gone. @param {string} session @param {AbortSignal} abort @returns {Promise<Map<string, Source>>} */
async function log(session, abort) {
  /** @type {import("../../api.js").Result<import("../../types.js").Page<import("../../types.js").Message>>} */
  const page = await get(`/v1/sessions/${part(session)}/messages`, { query: { limit: 1000 }, abort });
  const rows = page.ok ? page.data.data : [];
  return new Map(rows.map((row) => [row.id, { id: row.id, text: row.content, who: row.speaker ?? row.user_id ?? row.role, at: row.occurred_at, session }]));
}

/** @param {string} id @param {AbortSignal} abort @returns {Promise<Source>} */
async function remembered(id, abort) {
  /** @type {import("../../api.js").Result<Memory>} */
  const result = await get(`/v1/memories/${part(id)}`, { abort });
  if (!result.ok) return { id, text: null, who: "", at: null, session: null };
  const { content, occurred_at: at, session_id: session, kind } = result.data;
  return { id, text: content, who: speakerOf(result.data) ?? kind, at, session: kind === "message" ? session : null };
}
