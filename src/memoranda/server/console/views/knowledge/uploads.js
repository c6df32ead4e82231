// Files on their way into stores: some at once, each with its progress until it is searchable. They go on while other
// pages are shown.
import { batch, signal } from "../../ui/core.js";
import { get, part, post, upload } from "../../api.js";

/**
 * @typedef {"waiting" | "sending" | "indexing" | "completed" | "failed" | "cancelled"} UploadState
 * @typedef {{ key: number, store: string, file: File, path: string, sent: number, state: UploadState, fileId: string | null, error: string | null, stop: AbortController }} Upload
 */

const AT_ONCE = 3;
const WATCHED = 20; // files that are asked for in a round
const SLOWEST = 5000; // milliseconds between two rounds

/** Every upload since the console was opened, the newest last, as far as they were not cleared. */
export const uploads = signal(/** @type {Upload[]} */ ([]));
/** Grows when a file came into a store or reached its last state. */
export const uploadsChanged = signal(0);
let lastKey = 0;
let watching = false;

/**
 * Sends files to a store.
 * @param {string} store
 * @param {{ file: File, path: string }[]} files `path` is the name below a folder, or ""
 */
export function enqueue(store, files) {
  const added = files.map(({ file, path }) => /** @type {Upload} */ ({
    key: ++lastKey, store, file, path, sent: 0, state: "waiting", fileId: null, error: null, stop: new AbortController(),
  }));
  uploads.value = [...uploads.peek(), ...added];
  sendNext();
}

/** Tries again what failed: on its way to the server, or while the server read it. @param {Upload} one */
export async function tryAgain(one) {
  if (one.fileId === null) {
    change(one.key, { state: "waiting", sent: 0, error: null, stop: new AbortController() });
    sendNext();
    return;
  }
  change(one.key, { state: "indexing", error: null });
  /** @type {import("../../api.js").Result<import("../../types.js").StoreFile>} */
  const result = await post(`/v1/vector_stores/${part(one.store)}/files`, { file_id: one.fileId });
  change(one.key, result.ok ? stateOf(result.data) : { state: "failed", error: result.error.message });
  uploadsChanged.value += 1;
  if (!watching) void watch();
}

/** @param {Upload} one */
export function cancelUpload(one) {
  one.stop.abort();
  if (one.state === "waiting") change(one.key, { state: "cancelled" });
}

/** Takes those out of the list that are done. @param {string} store */
export function clearDone(store) {
  uploads.value = uploads.peek().filter((one) => one.store !== store || isOpen(one));
}

/** @param {Upload} one */
export const isOpen = (one) => one.state === "waiting" || one.state === "sending" || one.state === "indexing";

/** @param {number} key @param {Partial<Upload>} changes */
function change(key, changes) {
  uploads.value = uploads.peek().map((one) => (one.key === key ? { ...one, ...changes } : one));
}

function sendNext() {
  const all = uploads.peek();
  const free = AT_ONCE - all.filter((one) => one.state === "sending").length;
  for (const one of all.filter(({ state }) => state === "waiting").slice(0, free)) void sendOne(one);
}

/** @param {Upload} one */
async function sendOne(one) {
  change(one.key, { state: "sending" });
  const form = new FormData();
  form.append("file", one.file, one.file.name);
  if (one.path) form.append("attributes", JSON.stringify({ path: one.path.slice(-512) }));
  /** @type {import("../../api.js").Result<import("../../types.js").StoreFile>} */
  const result = await upload(`/v1/vector_stores/${part(one.store)}/files`, form, {
    abort: one.stop.signal, onProgress: (sent, total) => change(one.key, { sent: Math.min(one.file.size, Math.round((one.file.size * sent) / Math.max(1, total))) }),
  });
  batch(() => {
    if (result.ok) change(one.key, { ...stateOf(result.data), sent: one.file.size, fileId: result.data.id });
    else if (result.error.kind === "aborted") change(one.key, { state: "cancelled" });
    else change(one.key, { state: "failed", error: result.error.message });
    if (result.ok) uploadsChanged.value += 1;
  });
  sendNext();
  if (!watching) void watch();
}

/** @param {import("../../types.js").StoreFile} file @returns {{ state: UploadState, error: string | null }} */
function stateOf(file) {
  const state = file.status === "in_progress" ? "indexing" : file.status;
  return { state, error: file.last_error?.message ?? null };
}

/** Asks for files that are being indexed, the oldest first, with growing pauses while nothing changes. */
async function watch() {
  watching = true;
  let pause = 300;
  for (let open = indexing(); open.length > 0; open = indexing()) {
    await new Promise((done) => setTimeout(done, pause));
    let changed = false;
    for (const one of open.slice(0, WATCHED)) changed = (await look(one)) || changed;
    pause = changed ? 300 : Math.min(pause * 1.4, SLOWEST);
    if (changed) uploadsChanged.value += 1;
  }
  watching = false;
}

/** @param {number} key */
const latest = (key) => uploads.peek().find((one) => one.key === key);
const indexing = () => uploads.peek().filter((one) => one.state === "indexing");

/** Answers whether the file reached its last state. An answer is of no use if the upload changed meanwhile, by another attempt. @param {Upload} one */
async function look(one) {
  const before = latest(one.key);
  /** @type {import("../../api.js").Result<import("../../types.js").StoreFile>} */
  const result = await get(`/v1/vector_stores/${part(one.store)}/files/${part(one.fileId ?? "")}`);
  if (latest(one.key) !== before) return false;
  if (result.ok && result.data.status === "in_progress") return false;
  if (!result.ok && (result.error.kind === "network" || result.error.kind === "unavailable")) return false;
  change(one.key, result.ok ? stateOf(result.data) : result.error.kind === "not_found" ? { state: "cancelled" } : { state: "failed", error: result.error.message });
  return true;
}
