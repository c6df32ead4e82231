// Upload and ask: documents of one's own, and questions to them. Answers come in one piece.
import { html, useEffect, useLoaded, useRef, useState } from "../../ui/core.js";
import { get, part, post, remove, upload } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { Button, IconButton } from "../../ui/form.js";
import { usePoll } from "../../ui/pages.js";
import { Empty, Failed, Loaded, Loading } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { address, setQuery } from "../../router.js";
import { t } from "../../strings.js";
import { DropTarget, Pickers } from "../knowledge/drop.js";
import { FileStatus } from "../knowledge/files.js";
import { Composer } from "./composer.js";
import { ownCite } from "./own_cited.js";

/**
 * @typedef {import("../../types.js").UploadedDocument} UploadedDocument
 * @typedef {import("../../types.js").AskedEntry} AskedEntry
 * @typedef {{ data: AskedEntry[] }} Log
 */

const API = "/api/v1/upload-ask";

/** @param {{ query: URLSearchParams }} props */
export function UploadAsk({ query }) {
  const documents = useLoaded("documents", (abort) => /** @type {Promise<import("../../api.js").Result<{ data: UploadedDocument[] }>>} */ (get(`${API}/documents`, { query: { limit: 100 }, abort })));
  const [sending, setSending] = useState(0);
  const reading = (documents.data?.data ?? []).filter((one) => one.status === "in_progress").length;
  const waiting = reading + sending; // documents that an answer would not have
  usePoll(reading > 0, async () => documents.reload());
  /** @param {import("../knowledge/drop.js").Found[]} files */
  const take = async (files) => {
    setSending((n) => n + files.length);
    for (const { file } of files) {
      const form = new FormData();
      form.append("file", file, file.name);
      const result = await upload(`${API}/documents`, form, { abort: new AbortController().signal, onProgress: () => undefined });
      if (!result.ok) toast(`${file.name}: ${result.error.message}`, { bad: true });
      setSending((n) => n - 1);
      documents.reload();
    }
  };
  return html`<${DropTarget} className="talk-body" onFiles=${take}>
    <div class="own-documents"><${Loaded} of=${documents} lines=${1}>${/** @param {{ data: UploadedDocument[] }} page */ ({ data }) => html`
      <${Pickers} small onFiles=${take} />
      ${sending > 0 && html`<${Badge} tone="accent">${t.ask.sending(sending)}<//>`}
      ${data.length === 0 && html`<span class="quiet">${t.ask.noDocuments}</span>`}
      ${data.map((one) => html`<span class="own-document" key=${one.id} title=${one.error?.message ?? one.filename}><span class="own-name">${one.filename}</span>
        ${one.status !== "completed" && html`<${FileStatus} status=${one.status} />`}
        <${IconButton} icon="close" label=${`${t.remove}: ${one.filename}`} onClick=${() => drop(one, documents.reload)} /></span>`)}`}<//></div>
    <${Questions} query=${query} waiting=${waiting} />
  <//>`;
}

/** @param {UploadedDocument} one @param {() => void} reload */
async function drop(one, reload) {
  const result = await remove(`${API}/documents/${part(one.id)}`);
  if (!result.ok) toast(result.error.message, { bad: true });
  reload();
}

/** @param {{ query: URLSearchParams, waiting: number }} props */
function Questions({ query, waiting: indexing }) {
  const session = query.get("session");
  const own = useRef(session); // the session whose answers are in `entries`
  const [entries, setEntries] = useState(/** @type {AskedEntry[]} */ ([]));
  const [waiting, setWaiting] = useState(/** @type {string | null} */ (null));
  const [error, setError] = useState(/** @type {import("../../api.js").ApiError | null} */ (null));
  const [before] = useState(session);
  const log = useLoaded(before, (abort) => /** @type {Promise<import("../../api.js").Result<Log>>} */ (get(`${API}/logs`, { query: { sessionId: before, order: "asc", limit: 100 }, abort })));
  useEffect(() => {
    if (session !== own.current) setEntries([]); // another conversation, or a new one
    own.current = session;
  }, [session]);
  /** @param {string} question */
  const ask = async (question) => {
    setWaiting(question);
    setError(null);
    const body = { question, ...(session ? { sessionId: session } : {}), includeHistory: query.get("history") !== "off", ...(query.get("memory") === "off" ? { topKMems: 0 } : {}) };
    /** @type {import("../../api.js").Result<AskedEntry>} */
    const result = await post(`${API}/query`, body);
    if (!result.ok) {
      setError(result.error);
      setWaiting(null);
      return;
    }
    own.current = result.data.sessionId;
    setEntries((all) => [...all, { ...result.data, question }]);
    setWaiting(null);
    setQuery({ session: result.data.sessionId, q: null });
  };
  const all = [...(session !== null && session === before ? log.data?.data ?? [] : []), ...entries];
  return html`<div class="turns" role="log" tabIndex=${0} aria-label=${t.ask.conversation} aria-busy=${String(waiting !== null)}>
      ${log.error && html`<${Failed} error=${log.error} retry=${log.reload} />`}
      ${log.loading && html`<${Loading} lines=${5} />`}
      ${!log.loading && !log.error && all.length === 0 && waiting === null && !error && html`<${Empty} title=${t.ask.emptyTitle} body=${t.ask.uploadBody} />`}
      ${all.map((entry) => html`<${Entry} key=${entry.id} entry=${entry} />`)}
      ${waiting !== null && html`<article class="turn"><h2 class="turn-question">${waiting}</h2><p class="quiet pulse">${t.ask.states.searching} …</p></article>`}
      ${error && html`<${Failed} error=${error} />`}
    </div>
    <${Composer} query=${query} busy=${waiting !== null} onAsk=${ask} indexing=${indexing} />`;
}

/** @param {{ entry: AskedEntry }} props */
function Entry({ entry }) {
  const { sources, memories } = entry;
  return html`<article class="turn">
    <h2 class="turn-question"><span class="hidden">${t.ask.you}: </span>${entry.question}</h2>
    <p class="answer-text">${entry.answer ? numbered(entry) : t.ask.nothing}</p>
    <div class="answer-foot">${entry.status !== "answered" && html`<${Badge}>${t.ask.quoted}<//>`}
      ${(entry.degraded ?? []).length > 0 && html`<${Badge} tone="warn">${t.degraded(entry.degraded ?? [])}<//>`}</div>
    ${sources.length + memories.length > 0 && html`<details class="sources" open><summary>${t.ask.passages} <span class="quiet">${t.ask.sources(sources.length, memories.length)}</span></summary><ul>
      ${sources.map((one, i) => html`<li class="source" key=${one.citation ?? i}><span class="source-number" aria-hidden="true">${i + 1}</span><div><a class="source-name" href=${ownCite(one.documentId, one.chunkIndex)}>${one.filename}</a>
        <span class="source-meta"><${Badge} tone="good">${t.ask.document}<//>${one.cited && html`<${Badge} tone="accent">${t.ask.cited}<//>`}
          <span class="quiet">${[t.knowledge.chunk(one.chunkIndex), one.heading].filter(Boolean).join(" · ")}</span></span>
        <p class="source-text">${one.preview}</p></div></li>`)}
      ${memories.map((one, i) => html`<li class="source" key=${one.id}><span class="source-number" aria-hidden="true">M${i + 1}</span><div><a class="source-name" href=${address("memories", { id: one.id })}>${t.kinds[one.source] ?? one.source}</a>
        <span class="source-meta"><${Badge} tone="warn">${t.ask.memoryBadge}<//></span><p class="source-text">${one.preview}</p></div></li>`)}
    </ul></details>`}
  </article>`;
}

/** The answer with a link to the passage or memory in place of each citation. @param {AskedEntry} entry */
function numbered({ answer, sources, memories }) {
  return answer.split(/(\(Doc [^()\s]+\/Chunk \d+\)|[[(]Memory \d+[\])])/).map((piece) => {
    const place = sources.findIndex((one) => `(${one.citation})` === piece);
    const source = sources[place];
    if (source) return html`<a class="cite" href=${ownCite(source.documentId, source.chunkIndex)} aria-label=${t.ask.citation(place + 1, source.filename)}>${place + 1}</a>`;
    const number = Number(/^[[(]Memory (\d+)/.exec(piece)?.[1]);
    const memory = memories[number - 1];
    return memory ? html`<a class="cite" href=${address("memories", { id: memory.id })} aria-label=${t.ask.memoryCitation(number)}>M${number}</a>` : piece;
  });
}
