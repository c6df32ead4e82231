// Memories as the export of the API streams them: archived and superseded ones too, which listings leave out.
import { send } from "../api.js";

/** @typedef {import("../types.js").Memory} Memory */

/**
 * Calls `take` with each memory of a selection, in the order of the export, as they arrive; ends early when it answers false.
 * @param {Record<string, unknown>} selection
 * @param {AbortSignal} abort
 * @param {(memory: Memory) => boolean | void} take
 * @returns {Promise<import("../api.js").Result<null>>}
 */
export async function exported(selection, abort, take) {
  const sent = await send("POST", "/v1/memories/export", { body: selection, abort });
  if (!sent.ok) return sent;
  const reader = /** @type {ReadableStream<Uint8Array>} */ (sent.data.body).getReader();
  try {
    for await (const line of lines(reader)) {
      const row = JSON.parse(line);
      if (row.memoranda_export === undefined && take(row) === false) break;
    }
    return { ok: true, data: null };
  } catch (thrown) {
    const kind = abort.aborted ? "aborted" : "network";
    return { ok: false, error: { kind, status: 0, code: null, param: null, message: thrown instanceof Error ? thrown.message : String(thrown) } };
  } finally {
    reader.cancel().catch(() => undefined); // the stream may have ended, or broken, already
  }
}

/** @param {ReadableStreamDefaultReader<Uint8Array>} reader @returns {AsyncGenerator<string>} */
async function* lines(reader) {
  const decoder = new TextDecoder();
  let rest = "";
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const parts = (rest + decoder.decode(read.value, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) if (part) yield part;
  }
  if (rest) yield rest;
}
