import { bodyOf, streamOf } from './connect.js';

/** @typedef {import('./connect.js').CallOptions} CallOptions */
/** @typedef {import('./types.js').Schemas} Schemas */
/** @typedef {NonNullable<import('./types.js').QueryOf<'/v1/files'>['purpose']>} Purpose */

/**
 * The bytes of a file with its name.
 * @typedef {object} Source
 * @property {string} name The name of the file; its ending says how it is read.
 * @property {string | Blob | ArrayBuffer | Uint8Array<ArrayBuffer>} data
 * @property {string} [type] The media type.
 */

/** Uploaded files. */
export class Files {
  #http;

  /** @param {import('./connect.js').Http} http */
  constructor(http) {
    this.#http = http;
  }

  /**
   * Uploads a file.
   *
   * @param {Source} source
   * @param {{ purpose?: Purpose, expiresAfterSeconds?: number } & CallOptions} [options]
   * @returns {Promise<Schemas['FileObject']>}
   */
  upload(source, { purpose = 'assistants', expiresAfterSeconds, ...options } = {}) {
    const fields = { purpose, ...(expiresAfterSeconds === undefined ? {} : expiry(expiresAfterSeconds)) };
    return bodyOf(this.#http.POST('/v1/files', { ...form(source, fields), ...options }));
  }

  /**
   * A page of files, the newest first.
   *
   * @param {import('./types.js').QueryOf<'/v1/files'>} [listing]
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['FilePage']>}
   */
  list(listing, options) {
    return bodyOf(this.#http.GET('/v1/files', { params: { query: listing }, ...options }));
  }

  /**
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['FileObject']>}
   */
  get(id, options) {
    return bodyOf(this.#http.GET('/v1/files/{file_id}', { params: { path: { file_id: id } }, ...options }));
  }

  /**
   * The bytes of a file as they come.
   *
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<ReadableStream<Uint8Array>>}
   */
  content(id, options) {
    const params = { path: { file_id: id } };
    return streamOf(this.#http.GET('/v1/files/{file_id}/content', { params, parseAs: 'stream', ...options }));
  }

  /**
   * Deletes a file, also from the stores that have it.
   *
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['DeletedFile']>}
   */
  delete(id, options) {
    return bodyOf(this.#http.DELETE('/v1/files/{file_id}', { params: { path: { file_id: id } }, ...options }));
  }
}

/**
 * A request with a form of a file and fields.
 *
 * @param {Source} source
 * @param {Record<string, string>} fields
 * @returns {{ body: any, bodySerializer: () => FormData }}
 */
export function form(source, fields) {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields)) made.append(name, value);
  const { name, data, type } = source;
  made.append('file', type === undefined && data instanceof Blob ? data : new Blob([data], { type }), name);
  return { body: {}, bodySerializer: () => made };
}

/** @param {number} seconds */
function expiry(seconds) {
  return { 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': String(seconds) };
}
