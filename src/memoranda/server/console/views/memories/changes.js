// Changes of one or of many memories.
import { patch, part, remove } from "../../api.js";
import { toast } from "../../ui/toast.js";
import { t } from "../../strings.js";

/** @typedef {import("../../types.js").Memory} Memory */

const AT_ONCE = 4;

/**
 * Archives memories, or restores them, and offers to undo it.
 * @param {Memory[]} memories
 * @param {boolean} archived
 * @param {(changed: Memory[]) => void} done
 */
export async function setArchived(memories, archived, done) {
  const changed = /** @type {Memory[]} */ (await each(memories, (one) => patch(path(one), { archived })));
  done(changed);
  if (changed.length === 0) return;
  const says = (archived ? t.memories.archivedToast : t.memories.restoredToast)(changed.length);
  toast(says, { action: { label: t.memories.undo, run: () => void setArchived(changed, !archived, done) } });
}

/**
 * Deletes memories; calls `done` with the ids of those that are gone.
 * @param {Memory[]} memories
 * @param {(ids: string[]) => void} done
 */
export async function deleteAll(memories, done) {
  const gone = /** @type {{ id: string }[]} */ (await each(memories, (one) => remove(path(one))));
  if (gone.length > 0) toast(t.memories.deletedToast(gone.length));
  done(gone.map((one) => one.id));
}

/** @param {Memory} memory */
const path = (memory) => `/v1/memories/${part(memory.id)}`;

/**
 * Makes a request for each memory, four at once; a toast reports those that failed.
 * @param {Memory[]} memories
 * @param {(memory: Memory) => Promise<import("../../api.js").Result<unknown>>} request
 * @returns {Promise<unknown[]>} the answers of those that worked
 */
async function each(memories, request) {
  const waiting = [...memories];
  /** @type {unknown[]} */
  const answers = [];
  /** @type {import("../../api.js").ApiError[]} */
  const errors = [];
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const result = await request(next);
      if (result.ok) answers.push(result.data);
      else errors.push(result.error);
    }
  }));
  if (errors[0]) toast(t.memories.failedSome(errors.length, errors[0].message), { bad: true });
  return answers;
}
