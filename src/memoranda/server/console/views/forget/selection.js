// What an address of this page names, as the API takes it, and which memories that means.
import { momentOf } from "../../ui/days.js";
import { exported } from "../../ui/export.js";
import { session } from "../../session.js";
import { phraseOf } from "./phrase.js";

/**
 * @typedef {import("../../types.js").Memory} Memory
 * @typedef {{ kind: string, number: number, ended: number, examples: Memory[] }} Group
 * @typedef {{ text?: string, scopes?: string[], tags?: string[], kinds?: string[], source?: string, since?: string, until?: string }} Selection
 */

const EXAMPLES = 3;

/**
 * The fields of an address; null when it names nothing.
 * @param {URLSearchParams} query
 * @returns {Selection | null}
 */
export function selectionOf(query) {
  /** @type {Selection} */
  const selection = {};
  const user = query.get("user");
  const scopes = [...(user ? [`user:${user}`] : []), ...query.getAll("scope")];
  const [text, kind, source, since, until] = [query.get("q"), query.get("kind"), query.get("source"), momentOf(query.get("since")), momentOf(query.get("until"))];
  if (text) selection.text = text;
  if (scopes.length) selection.scopes = scopes;
  if (query.getAll("tag").length) selection.tags = query.getAll("tag");
  if (kind) selection.kinds = [kind];
  if (source) selection.source = source;
  if (since) selection.since = since;
  if (until) selection.until = until;
  return Object.keys(selection).length ? selection : null;
}

/** Whether a selection means what was said and written everywhere, not memories alone. @param {Selection} selection */
export const isEverywhere = ({ tags, kinds, source }) => !tags && !kinds && source === undefined;

/**
 * The memories of a selection by kind, archived and superseded ones too, the most numerous kind first.
 * @param {Selection} selection
 * @param {AbortSignal} abort
 * @returns {Promise<import("../../api.js").Result<Group[]>>}
 */
export async function preview({ text, ...rest }, abort) {
  const holds = text === undefined ? null : phraseOf(text);
  const who = session.peek();
  const mine = who?.role === "admin" ? null : who?.user ?? null;
  /** @type {Map<string, Group>} */
  const groups = new Map();
  const done = await exported(rest, abort, (memory) => {
    if (mine !== null && memory.user_id !== mine && !(memory.user_id === null && rest.scopes)) return; // others' memories are kept
    if (holds && ![memory.content, memory.source, memory.role, memory.tags, memory.metadata].some(holds)) return;
    const group = groups.get(memory.kind) ?? { kind: memory.kind, number: 0, ended: 0, examples: [] };
    group.number += 1;
    if (memory.archived_at !== null || memory.superseded_by !== null) group.ended += 1;
    if (group.examples.length < EXAMPLES) group.examples.push(memory);
    groups.set(memory.kind, group);
  });
  return done.ok ? { ok: true, data: [...groups.values()].sort((a, b) => b.number - a.number) } : done;
}
