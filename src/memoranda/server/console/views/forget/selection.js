// What an address of this page names, as the API takes it.
import { momentOf } from "../../ui/days.js";

/**
 * @typedef {{ text?: string, scopes?: string[], tags?: string[], kinds?: string[], source?: string, since?: string, until?: string }} Selection
 */

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
