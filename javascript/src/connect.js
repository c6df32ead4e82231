import createClient, { defaultPathSerializer } from 'openapi-fetch';

import { errorFrom, InvalidInput, StorageError } from './errors.js';

/** @typedef {import('openapi-fetch').Client<import('./openapi.js').paths>} Http */

const LONGEST = 2 ** 31 - 1; // milliseconds of a timer; a longer one would end at once

/**
 * @typedef {object} Options
 * @property {string} [baseURL] Where the server is; `http://127.0.0.1:8377` without it.
 * @property {string} [apiKey] The key, where the server asks for one.
 * @property {string} [user] The user to act for, which only a `service` key may name.
 * @property {number} [timeout] Milliseconds to wait until an answer begins. Without it the runtime decides: Node waits 300 s.
 * @property {typeof globalThis.fetch} [fetch] Sends the requests instead of the global `fetch`.
 */

/**
 * @typedef {object} CallOptions
 * @property {AbortSignal} [signal] Gives the call up.
 */

/**
 * The server's routes by method and path, typed. Whatever is not an answer is thrown as a `MemorandaError`. Nothing is
 * sent a second time.
 *
 * @param {Options} options
 * @returns {Http}
 */
export function connect({ baseURL = 'http://127.0.0.1:8377', apiKey, user, timeout, fetch = globalThis.fetch }) {
  const url = addressOf(baseURL);
  if (timeout !== undefined && !(timeout > 0)) {
    throw new InvalidInput(`timeout: is ${timeout}; give milliseconds greater than 0`, { param: 'timeout' });
  }
  const headers = {
    ...(apiKey === undefined ? {} : header('apiKey', 'authorization', `Bearer ${apiKey}`)),
    ...(user === undefined ? {} : header('user', 'x-memoranda-user', String.fromCharCode(...new TextEncoder().encode(user)))),
  };
  return createClient({ baseUrl: url, headers, pathSerializer: pathOf, fetch: (request) => answered(request, url, timeout, fetch) });
}

/**
 * The body of an answer.
 *
 * @template T
 * @param {Promise<{ data?: T }>} call
 * @returns {Promise<T>}
 */
export async function bodyOf(call) {
  try {
    return /** @type {T} */ ((await call).data);
  } catch (error) {
    throw error instanceof SyntaxError ? notJson(error) : error;
  }
}

/**
 * The value of a line of a stream.
 *
 * @param {string} text
 * @returns {any}
 */
export function valueOf(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw notJson(error);
  }
}

/**
 * The bytes of an answer as they come.
 *
 * @param {Promise<{ data?: ReadableStream<Uint8Array<ArrayBuffer>> | null }>} call
 * @returns {Promise<ReadableStream<Uint8Array<ArrayBuffer>>>}
 */
export async function streamOf(call) {
  return (await call).data ?? new Blob([]).stream();
}

/**
 * The lines of a stream, without their ends.
 *
 * @param {ReadableStream<Uint8Array>} stream
 * @returns {AsyncGenerator<string, void, undefined>}
 */
export async function* linesOf(stream) {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of stream) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest) yield rest;
}

/** @param {unknown} error */
function notJson(error) {
  return new StorageError('the server answered with something that is not JSON', { cause: error });
}

/**
 * The body of an answer, which throws a `StorageError` where the connection is lost.
 *
 * @param {ReadableStream<Uint8Array> | null} body
 */
function checked(body) {
  const reader = body?.getReader();
  if (!reader) return null;
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        const isLost = error instanceof TypeError;
        controller.error(isLost ? new StorageError(`the server's answer broke off: ${error.message}`, { cause: error }) : error);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/**
 * The path of a route with its parameters; one that would lead to another route is refused.
 *
 * @param {string} route
 * @param {Record<string, unknown>} params
 */
function pathOf(route, params) {
  for (const [, name = ''] of route.matchAll(/\{(\w+)\}/g)) {
    const value = String(params[name] ?? '');
    if (['', '.', '..'].includes(value) || /\p{Surrogate}/u.test(value)) {
      throw new InvalidInput(`${name}: is ${value || 'empty'}, which no id can be`, { param: name });
    }
  }
  return defaultPathSerializer(route, params);
}

/** @param {string} baseURL */
function addressOf(baseURL) {
  const url = baseURL.replace(/\/+$/, '');
  if (!/^https?:\/\/[^/@]+(\/|$)/.test(url) || url.endsWith('/v1') || !URL.canParse(url)) {
    throw new InvalidInput(`baseURL: is ${baseURL}; give the server's address without /v1, as http://127.0.0.1:8377`, { param: 'baseURL' });
  }
  return url;
}

/**
 * A header for an option, whose characters are bytes.
 *
 * @param {string} option
 * @param {string} name
 * @param {string} value
 */
function header(option, name, value) {
  try {
    return Object.fromEntries(new Headers({ [name]: value }));
  } catch {
    throw new InvalidInput(`${option}: has characters that a header cannot have`, { param: option });
  }
}

/**
 * @param {Request} request
 * @param {string} url
 * @param {number | undefined} timeout
 * @param {typeof globalThis.fetch} send
 */
async function answered(request, url, timeout, send) {
  const late = new AbortController();
  const abort = () => late.abort(request.signal.reason);
  if (request.signal.aborted) abort();
  request.signal.addEventListener('abort', abort);
  const expired = new StorageError(`the server at ${url} did not answer within ${timeout} ms`);
  const timer = timeout === undefined || timeout > LONGEST ? undefined : setTimeout(() => late.abort(expired), timeout);
  try {
    const response = await send(request, { signal: late.signal });
    if (response.ok) return new Response(checked(response.body), response);
    throw await refusal(response);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const cause = error.cause instanceof Error ? error.cause.message || error.cause.name : error.message;
    throw new StorageError(`the server at ${url} did not answer: ${cause}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/** @param {Response} response */
async function refusal(response) {
  const text = await response.text();
  const seconds = response.headers.get('retry-after');
  return errorFrom(parsed(text), {
    status: response.status,
    requestId: response.headers.get('x-request-id'),
    retryAfter: seconds === null ? null : Number(seconds),
  });
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
