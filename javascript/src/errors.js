/**
 * What the client throws, as one tree.
 *
 * MemorandaError
 * ├── InvalidInput          a field is wrong: `param` names it
 * │   ├── QuotaExceeded     it would be more than the tenant may hold
 * │   └── DimensionMismatch a vector of the wrong length
 * ├── NotFound              no such thing, or not yours to see
 * ├── Conflict              the write contradicts what is stored
 * ├── Forbidden             the key does not allow it
 * ├── Unauthorized          no key, or an unknown one
 * ├── StorageError          the rows could not be read or written, or the server was not reached
 * ├── IndexUnavailable      an index did not answer; the rows are safe
 * ├── EmbedderUnavailable   no embedding could be made
 * ├── SpendingLimit         the tenant has spent what it may in a day
 * └── ModelError            no answer of the language model can be used
 *
 * @module
 */

/**
 * @typedef {object} Details
 * @property {number} [status] The HTTP status; none where the server was not reached.
 * @property {string | null} [code] The `code` of the error, as `invalid_value`.
 * @property {string | null} [param] The path of the field that is wrong, as `memories[3].tags`.
 * @property {string | null} [requestId] The id under which the server logged the request.
 * @property {number | null} [retryAfter] Seconds after which to try again, where the server says so.
 * @property {unknown} [cause]
 */

/** Something that Memoranda refuses or could not do, said in one sentence. */
export class MemorandaError extends Error {
  /**
   * @param {string} message
   * @param {Details} [details]
   */
  constructor(message, { status, code = null, param = null, requestId = null, retryAfter = null, cause } = {}) {
    super(message, { cause });
    this.name = new.target.name;
    this.status = status;
    this.code = code;
    this.param = param;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }
}

/** A value is not acceptable; `param` is its path. */
export class InvalidInput extends MemorandaError {}

/** It would be more than the tenant may hold. */
export class QuotaExceeded extends InvalidInput {}

/** A vector has another number of dimensions than those of the server's embedding model. */
export class DimensionMismatch extends InvalidInput {}

/** No such object, or it belongs to someone else. */
export class NotFound extends MemorandaError {}

/** The write contradicts what is stored; nothing was changed. */
export class Conflict extends MemorandaError {}

/** The key does not allow this. */
export class Forbidden extends MemorandaError {}

/** No key was sent, or it is not a known one. */
export class Unauthorized extends MemorandaError {}

/** The rows could not be read or written, or the server was not reached. */
export class StorageError extends MemorandaError {}

/** A derived index did not answer; the rows are safe. */
export class IndexUnavailable extends MemorandaError {}

/** No embedding could be made. */
export class EmbedderUnavailable extends MemorandaError {}

/** The tenant has spent what it may in a day; `retryAfter` says when that ends. */
export class SpendingLimit extends MemorandaError {}

/** No answer of the language model can be used. */
export class ModelError extends MemorandaError {}

/** @type {Record<string, typeof MemorandaError>} */
const CLASSES = {
  invalid_value: InvalidInput,
  request_too_large: InvalidInput,
  invalid_multipart: InvalidInput,
  dimension_mismatch: DimensionMismatch,
  quota_exceeded: QuotaExceeded,
  file_too_large: QuotaExceeded,
  invalid_api_key: Unauthorized,
  forbidden: Forbidden,
  host_not_allowed: Forbidden,
  origin_not_allowed: Forbidden,
  not_found: NotFound,
  conflict: Conflict,
  storage_unavailable: StorageError,
  disk_full: StorageError,
  index_unavailable: IndexUnavailable,
  embedder_unavailable: EmbedderUnavailable,
  insufficient_quota: SpendingLimit,
  model_error: ModelError,
  model_unavailable: ModelError,
  model_refused: ModelError,
  model_not_found: ModelError,
};

/**
 * The error in the server's envelope.
 *
 * @param {unknown} body The parsed body of the answer, or an `error` event of a stream in such an envelope.
 * @param {Details} details
 * @returns {MemorandaError}
 */
export function errorFrom(body, details) {
  const problem = /** @type {{ error?: { message?: unknown, code?: string | null, param?: string | null } } | null} */ (body)?.error;
  if (typeof problem?.message !== 'string') {
    const says = `the server answered ${details.status} with something that is not an error of Memoranda`;
    return new StorageError(says, details);
  }
  const { message, code = null, param = null } = problem;
  const Class = CLASSES[code ?? ''] ?? MemorandaError;
  return new Class(message, { ...details, code, param });
}
