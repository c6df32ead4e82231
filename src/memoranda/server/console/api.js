// The public HTTP API. Every call answers a value: what was asked for, or what went wrong.
import { session, signedOut } from "./session.js";
import { t } from "./strings.js";

/**
 * @typedef {"unauthorized" | "forbidden" | "not_found" | "invalid" | "conflict" | "unavailable" | "network" | "aborted" | "failed"} ErrorKind
 * @typedef {{ kind: ErrorKind, status: number, code: string | null, param: string | null, message: string }} ApiError
 */
/**
 * @template T
 * @typedef {{ ok: true, data: T } | { ok: false, error: ApiError }} Result
 */
/**
 * @typedef {Record<string, string | number | boolean | string[] | null | undefined>} Query
 * @typedef {{ query?: Query, body?: unknown, form?: FormData, abort?: AbortSignal }} Options
 */

/** @type {Record<number, ErrorKind>} */
const KINDS = {
  400: "invalid", 401: "unauthorized", 403: "forbidden", 404: "not_found", 409: "conflict", 413: "invalid", 415: "invalid",
  429: "unavailable", 502: "unavailable", 503: "unavailable", 504: "unavailable", 507: "unavailable",
};
const CSRF = "X-Memoranda-CSRF";

/**
 * @template T
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<Result<T>>}
 */
export const get = (path, options) => call("GET", path, options);

/**
 * @template T
 * @param {string} path
 * @param {unknown} body
 * @param {Options} [options]
 * @returns {Promise<Result<T>>}
 */
export const post = (path, body, options) => call("POST", path, { ...options, body });

/**
 * @template T
 * @param {string} path
 * @param {unknown} body
 * @param {Options} [options]
 * @returns {Promise<Result<T>>}
 */
export const patch = (path, body, options) => call("PATCH", path, { ...options, body });

/**
 * @template T
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<Result<T>>}
 */
export const remove = (path, options) => call("DELETE", path, options);

/**
 * A part of a path that may hold any character.
 * @param {string} id
 */
export const part = (id) => encodeURIComponent(id);

/**
 * One request whose answer is JSON.
 * @template T
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<Result<T>>}
 */
export async function call(method, path, options = {}) {
  const sent = await send(method, path, options);
  if (!sent.ok) return sent;
  try {
    return { ok: true, data: await sent.data.json() };
  } catch (thrown) {
    return { ok: false, error: broken(thrown) };
  }
}

/**
 * One request, and the response before its body is read: for files, exports and events.
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<Result<Response>>}
 */
export async function send(method, path, { query, body, form, abort } = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const csrf = session.peek()?.csrf;
  if (csrf && method !== "GET") headers[CSRF] = csrf;
  /** @type {Response} */
  let response;
  try {
    response = await fetch(path + search(query), {
      method, headers, body: form ?? (body === undefined ? null : JSON.stringify(body)), signal: abort ?? null,
    });
  } catch (thrown) {
    return { ok: false, error: broken(thrown) };
  }
  if (response.ok) return { ok: true, data: response };
  const error = await refusal(response);
  if (error.kind === "unauthorized") signedOut();
  return { ok: false, error };
}

/** The bytes of a response. @param {Response} response @returns {Promise<Result<Blob>>} */
export async function bodyOf(response) {
  try {
    return { ok: true, data: await response.blob() };
  } catch (thrown) {
    return { ok: false, error: broken(thrown) };
  }
}

/**
 * Sends a form and reports how many of its bytes are on their way, which `fetch` cannot.
 * @template T
 * @param {string} path
 * @param {FormData} form
 * @param {{ onProgress: (sent: number, total: number) => void, abort: AbortSignal }} options
 * @returns {Promise<Result<T>>}
 */
export function upload(path, form, { onProgress, abort }) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    const fail = (/** @type {ErrorKind} */ kind, /** @type {string} */ message) => resolve({ ok: false, error: { kind, status: 0, code: null, param: null, message } });
    request.upload.onprogress = (event) => onProgress(event.loaded, event.total);
    request.onerror = () => fail("network", t.errors.title.network ?? "");
    request.onabort = () => fail("aborted", t.errors.title.aborted ?? "");
    request.onload = async () => {
      const response = new Response(request.responseText, { status: request.status });
      if (response.ok) resolve({ ok: true, data: JSON.parse(request.responseText) });
      else {
        const error = await refusal(response);
        if (error.kind === "unauthorized") signedOut();
        resolve({ ok: false, error });
      }
    };
    abort.addEventListener("abort", () => request.abort());
    request.open("POST", path);
    const csrf = session.peek()?.csrf;
    if (csrf) request.setRequestHeader(CSRF, csrf);
    request.send(form);
  });
}

/**
 * The server-sent events of one request, in order: each `data` as JSON. Ends with the stream, and yields an error once
 * if it breaks.
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {AsyncGenerator<Result<{ event: string, data: any }>>}
 */
export async function* events(method, path, options = {}) {
  const sent = await send(method, path, options);
  if (!sent.ok) {
    yield sent;
    return;
  }
  const reader = /** @type {ReadableStream<Uint8Array>} */ (sent.data.body).getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      text += decoder.decode(read.value, { stream: true });
      const blocks = text.split(/\r?\n\r?\n/);
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const parsed = eventOf(block);
        if (parsed !== null) yield { ok: true, data: parsed };
      }
    }
  } catch (thrown) {
    yield { ok: false, error: broken(thrown) };
  } finally {
    reader.cancel().catch(() => undefined); // the stream may have ended, or broken, already
  }
}

/**
 * One block of an event stream; null for a comment and for the mark of the end.
 * @param {string} block
 * @returns {{ event: string, data: any } | null}
 */
export function eventOf(block) {
  let event = "message";
  /** @type {string[]} */
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
  }
  const text = data.join("\n");
  return text === "" || text === "[DONE]" ? null : { event, data: JSON.parse(text) };
}

/**
 * A query string with its question mark; a list is a repeated parameter, and what is empty is left out.
 * @param {Query} [query]
 */
export function search(query = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") parameters.append(name, String(one));
    }
  }
  const text = parameters.toString();
  return text ? `?${text}` : "";
}

/**
 * @param {Response} response
 * @returns {Promise<ApiError>}
 */
async function refusal(response) {
  /** @type {{ message?: string, code?: string | null, param?: string | null }} */
  let error = {};
  try {
    error = (await response.json()).error ?? {};
  } catch {
    error = {}; // a proxy answered, not the server
  }
  return {
    kind: KINDS[response.status] ?? "failed",
    status: response.status,
    code: error.code ?? null,
    param: error.param ?? null,
    message: error.message ?? `HTTP ${response.status}`,
  };
}

/**
 * @param {unknown} thrown
 * @returns {ApiError}
 */
function broken(thrown) {
  const aborted = thrown instanceof DOMException && thrown.name === "AbortError";
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return { kind: aborted ? "aborted" : "network", status: 0, code: null, param: null, message };
}
