// A conversation: what was said, from the address or from this visit, and a question under way.
import { useEffect, useRef, useState } from "../../ui/core.js";
import { events, get, part } from "../../api.js";
import { setQuery } from "../../router.js";
import { after, asked, ended, isOpen } from "./answer.js";

/**
 * @typedef {import("./answer.js").Turn} Turn
 * @typedef {import("../../types.js").Answer} Answer
 * @typedef {{ question: string, stores: string[], memory: boolean, user: string, history: boolean, model: string }} Question
 */

const INCLUDE = ["file_search_call.results"];
const FURTHEST = 30; // turns of a conversation that are shown when its address is opened

/**
 * @param {string | null} id the last response of the conversation
 */
export function useConversation(id) {
  const [turns, setTurns] = useState(/** @type {Turn[]} */ ([]));
  const [error, setError] = useState(/** @type {import("../../api.js").ApiError | null} */ (null));
  const [loading, setLoading] = useState(id !== null);
  const [round, again] = useState(0);
  const shown = useRef(/** @type {string | null} */ (null));
  const under = useRef(/** @type {AbortController | null} */ (null));

  useEffect(() => {
    if (id === shown.current && round === 0) return undefined;
    under.current?.abort();
    shown.current = id;
    setError(null);
    if (id === null) {
      setTurns([]);
      setLoading(false);
      return undefined;
    }
    const abort = new AbortController();
    setLoading(true);
    load(id, abort.signal).then((result) => {
      if (abort.signal.aborted) return;
      setLoading(false);
      if (result.ok) setTurns(result.data);
      else setError(result.error);
    });
    return () => abort.abort();
  }, [id, round]);
  useEffect(() => () => under.current?.abort(), []);

  /** @param {Question} question */
  const ask = async (question) => {
    const abort = new AbortController();
    under.current = abort;
    const previous = question.history ? turns.filter((turn) => turn.id !== null && turn.state !== "failed").at(-1)?.id ?? null : null;
    const kept = question.history ? turns.filter((turn) => turn.state !== "failed") : [];
    let turn = asked(`${Date.now()}`, question.question, question.stores);
    setTurns([...kept, turn]);
    for await (const event of events("POST", "/v1/responses", { body: bodyOf(question, previous), abort: abort.signal })) {
      if (under.current !== abort) return; // another conversation is shown
      if (event.ok) turn = after(turn, event.data.data);
      else turn = event.error.kind === "aborted" ? { ...turn, state: "stopped" } : { ...turn, state: "failed", error: event.error };
      setTurns([...kept, turn]);
    }
    if (under.current !== abort) return;
    under.current = null;
    if (isOpen(turn.state)) setTurns([...kept, { ...turn, state: "incomplete" }]);
    if (turn.id !== null && turn.state !== "failed") {
      shown.current = turn.id;
      setQuery({ response: turn.id, q: null }, { replace: false });
    }
  };
  return { turns, error, loading, ask, stop: () => under.current?.abort(), reload: () => again((n) => n + 1) };
}

/** @param {Question} question @param {string | null} previous */
function bodyOf({ question, stores, memory, user, model }, previous) {
  return {
    model, input: question, stream: true, include: INCLUDE,
    ...(memory ? {} : { memory: false }),
    ...(memory && user ? { memory: { user_id: user } } : {}),
    ...(previous ? { previous_response_id: previous } : {}),
    ...(stores.length ? { tools: [{ type: "file_search", vector_store_ids: stores }] } : {}),
  };
}

/**
 * A conversation from its last response back to its first, as far as it is stored.
 * @param {string} last
 * @param {AbortSignal} abort
 * @returns {Promise<import("../../api.js").Result<Turn[]>>}
 */
async function load(last, abort) {
  /** @type {Turn[]} */
  const turns = [];
  /** @type {string | null} */
  let id = last;
  while (id !== null && turns.length < FURTHEST) {
    /** @type {[import("../../api.js").Result<Answer>, import("../../api.js").Result<{ data: { role?: string, content?: { text?: string }[] | string }[] }>]} */
    const [response, input] = await Promise.all([
      get(`/v1/responses/${part(id)}`, { query: { include: INCLUDE }, abort }), get(`/v1/responses/${part(id)}/input_items`, { query: { order: "asc", limit: 100 }, abort }),
    ]);
    if (!response.ok) return turns.length > 0 ? { ok: true, data: turns } : response; // what was before is deleted
    if (!input.ok) return input;
    const stores = response.data.tools.flatMap((tool) => tool.vector_store_ids ?? []);
    turns.unshift(ended(asked(id, questionOf(input.data.data), stores), response.data));
    id = response.data.previous_response_id;
  }
  return { ok: true, data: turns };
}

/** @param {{ role?: string, content?: { text?: string }[] | string }[]} items */
function questionOf(items) {
  const content = items.filter((item) => item.role === "user").at(-1)?.content ?? "";
  return typeof content === "string" ? content : content.map((one) => one.text ?? "").join("\n");
}
