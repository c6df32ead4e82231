// The sample of `memoranda demo`, and a document: what loads it, and what removes it again. Its vector store comes first
// and goes last, so that a sample that is there in part can be removed.
import { html, useState } from "./core.js";
import { get, part, post, remove, send } from "../api.js";
import { memoriesAdded, useWrites } from "./add_memory.js";
import { Confirm } from "./dialog.js";
import { Button } from "./form.js";
import { toast } from "./toast.js";
import { session } from "../session.js";
import { t } from "../strings.js";

/**
 * @template T
 * @typedef {import("../api.js").Result<T>} Result
 */
/**
 * @typedef {import("../types.js").VectorStore} VectorStore
 * @typedef {{ session: string, messages: object[], memories: { user_id?: string }[], document: { store: string, filename: string, text: string }, questions: { query: string }[] }} Sample
 */

const MARK = { sample: "memoranda" }; // metadata of its store and of its memories
const WAIT = 10; // seconds for the document to be indexed

/** The store of the sample, if it is loaded. @param {VectorStore[]} stores */
export const sampleIn = (stores) => stores.find((store) => store.metadata.sample === MARK.sample) ?? null;

/** @returns {Promise<Result<Sample>>} */
export const sampleFile = () => get(new URL("sample.json", /** @type {HTMLScriptElement} */ (document.querySelector("script[type=module]")).src).pathname);

/** Stores the sample; answers what went wrong. @returns {Promise<import("../api.js").ApiError | null>} */
async function load() {
  const file = await sampleFile();
  if (!file.ok) return file.error;
  const { document, memories, messages, session: id } = file.data;
  /** @type {Result<VectorStore>} */
  const store = await post("/v1/vector_stores", { name: document.store, metadata: MARK });
  if (!store.ok) return store.error;
  const form = new FormData();
  form.append("file", new File([document.text], document.filename, { type: "text/markdown" }));
  const own = session.peek()?.user; // a key that is bound to a user writes for this user alone
  const rows = memories.map(({ user_id, ...memory }) => ({ ...memory, source: "sample", metadata: MARK, ...(own ? {} : { user_id }) }));
  const steps = [
    () => send("POST", `/v1/vector_stores/${part(store.data.id)}/files`, { form, query: { wait: WAIT } }),
    () => post("/v1/messages", { session_id: id, messages, extraction: false }),
    () => post("/v1/memories/batch", { memories: rows }),
  ];
  for (const step of steps) {
    const done = await step();
    if (!done.ok) return done.error;
  }
  return null;
}

/** Removes the sample; answers what went wrong. @param {VectorStore} store @returns {Promise<import("../api.js").ApiError | null>} */
async function unload(store) {
  const file = await sampleFile();
  if (!file.ok) return file.error;
  /** @type {[Result<{ data: { id: string }[] }>, Result<{ data: { id: string }[] }>]} */
  const [memories, files] = await Promise.all([
    get("/v1/memories", { query: { filters: JSON.stringify(MARK), include_archived: true, limit: 1000 } }), get(`/v1/vector_stores/${part(store.id)}/files`, { query: { limit: 100 } }),
  ]);
  if (!memories.ok) return memories.error;
  if (!files.ok) return files.error;
  const paths = [
    `/v1/sessions/${part(file.data.session)}`, ...memories.data.data.map(({ id }) => `/v1/memories/${part(id)}`),
    ...files.data.data.map(({ id }) => `/v1/files/${part(id)}`), `/v1/vector_stores/${part(store.id)}`,
  ];
  for (const path of paths) {
    const done = await remove(path);
    if (!done.ok && done.error.kind !== "not_found") return done.error;
  }
  return null;
}

/** Loads the sample into an empty console; nothing for keys that only read. @param {{ kind?: "" | "primary", small?: boolean, onLoaded?: () => void }} props */
export function LoadSampleButton({ kind = "", small = false, onLoaded }) {
  const [busy, setBusy] = useState(false);
  const start = async () => {
    setBusy(true);
    const error = await load();
    setBusy(false);
    toast(error === null ? t.sample.loadedToast : error.message, { bad: error !== null });
    memoriesAdded.value += 1;
    if (error === null) onLoaded?.();
  };
  return useWrites() ? html`<${Button} kind=${kind} small=${small} busy=${busy} icon="download" onClick=${start}>${t.sample.load}<//>` : null;
}

/** @param {{ store: VectorStore }} props */
export function RemoveSampleButton({ store }) {
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const start = async () => {
    setBusy(true);
    const error = await unload(store);
    setBusy(false);
    toast(error === null ? t.sample.removedToast : error.message, { bad: error !== null });
    memoriesAdded.value += 1;
  };
  return html`<${Button} small busy=${busy} icon="delete" onClick=${() => setAsking(true)}>${t.sample.remove}<//>
    ${asking && html`<${Confirm} title=${t.sample.removeTitle} body=${t.sample.removeBody} action=${t.sample.remove} onConfirm=${() => void start()} onClose=${() => setAsking(false)} />`}`;
}
