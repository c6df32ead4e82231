import { bodyOf } from './connect.js';
import { form } from './files.js';

/** @typedef {import('./connect.js').CallOptions} CallOptions */
/** @typedef {import('./types.js').Schemas} Schemas */
/** @typedef {import('./files.js').Source} Source */

const POLL = 250; // milliseconds between two looks at a file that is being read

/** Vector stores: documents that are searched. */
export class Stores {
  #http;

  /** @param {import('./connect.js').Http} http */
  constructor(http) {
    this.#http = http;
  }

  /**
   * @param {Schemas['StoreBody']} [store]
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['StoreObject']>}
   */
  create(store = {}, options) {
    return bodyOf(this.#http.POST('/v1/vector_stores', { body: store, ...options }));
  }

  /**
   * A page of stores, the newest first.
   *
   * @param {import('./types.js').QueryOf<'/v1/vector_stores'>} [listing]
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['StorePage']>}
   */
  list(listing, options) {
    return bodyOf(this.#http.GET('/v1/vector_stores', { params: { query: listing }, ...options }));
  }

  /**
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['StoreObject']>}
   */
  get(id, options) {
    return bodyOf(this.#http.GET('/v1/vector_stores/{store_id}', { ...at(id), ...options }));
  }

  /**
   * Changes the fields that are given.
   *
   * @param {string} id
   * @param {Schemas['StoreChangeBody']} change
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['StoreObject']>}
   */
  update(id, change, options) {
    return bodyOf(this.#http.POST('/v1/vector_stores/{store_id}', { ...at(id), body: change, ...options }));
  }

  /**
   * Deletes a store; its files stay.
   *
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['DeletedStore']>}
   */
  delete(id, options) {
    return bodyOf(this.#http.DELETE('/v1/vector_stores/{store_id}', { ...at(id), ...options }));
  }

  /**
   * Adds an uploaded file to a store. It is read in the background; `waitFile` waits for that.
   *
   * @param {string} id
   * @param {string | Schemas['AttachBody']} file Its id, or its id with `attributes` and `chunking_strategy`.
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['StoreFileObject']>}
   */
  attach(id, file, options) {
    const body = typeof file === 'string' ? { file_id: file } : file;
    return bodyOf(this.#http.POST('/v1/vector_stores/{store_id}/files', { ...at(id), body, ...options }));
  }

  /**
   * Uploads a file into a store.
   *
   * @param {string} id
   * @param {Source} source
   * @param {Omit<Schemas['AttachBody'], 'file_id'> & CallOptions} [options]
   * @returns {Promise<Schemas['StoreFileObject']>}
   */
  upload(id, source, { attributes, chunking_strategy, ...options } = {}) {
    const given = Object.entries({ attributes, chunking_strategy }).filter(([, value]) => value != null);
    const fields = Object.fromEntries(given.map(([name, value]) => [name, JSON.stringify(value)]));
    const sent = form(source, fields);
    return bodyOf(this.#http.POST('/v1/vector_stores/{store_id}/files', { ...at(id), ...sent, ...options }));
  }

  /**
   * A page of the files of a store, the newest first.
   *
   * @param {string} id
   * @param {import('./types.js').QueryOf<'/v1/vector_stores/{store_id}/files'>} [listing]
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['StoreFilePage']>}
   */
  files(id, listing, options) {
    const params = { path: { store_id: id }, query: listing };
    return bodyOf(this.#http.GET('/v1/vector_stores/{store_id}/files', { params, ...options }));
  }

  /**
   * @param {string} id
   * @param {string} fileId
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['StoreFileObject']>}
   */
  file(id, fileId, options) {
    return bodyOf(this.#http.GET('/v1/vector_stores/{store_id}/files/{file_id}', { ...of(id, fileId), ...options }));
  }

  /**
   * The text that was read out of a file.
   *
   * @param {string} id
   * @param {string} fileId
   * @param {CallOptions} [options]
   * @returns {Promise<string>}
   */
  async text(id, fileId, options) {
    const call = this.#http.GET('/v1/vector_stores/{store_id}/files/{file_id}/content', { ...of(id, fileId), ...options });
    return (await bodyOf(call)).data.map((part) => part.text).join('');
  }

  /**
   * Takes a file out of a store.
   *
   * @param {string} id
   * @param {string} fileId
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['DetachedFile']>}
   */
  detach(id, fileId, options) {
    return bodyOf(
      this.#http.DELETE('/v1/vector_stores/{store_id}/files/{file_id}', { ...of(id, fileId), ...options }),
    );
  }

  /**
   * A file of a store once it was read: `completed`, `failed` or `cancelled`.
   *
   * @param {string} id
   * @param {string} fileId
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['StoreFileObject']>}
   */
  async waitFile(id, fileId, options) {
    for (;;) {
      const found = await this.file(id, fileId, options);
      if (found.status !== 'in_progress') return found;
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
  }

  /**
   * The passages of one store or of several that answer a question, best first.
   *
   * @param {string | string[]} ids
   * @param {string | Schemas['PassagesBody']} query
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['PassagePage']>}
   */
  search(ids, query, options) {
    const asked = typeof query === 'string' ? { query } : query;
    const body = { ...asked, vector_store_ids: typeof ids === 'string' ? [ids] : ids };
    const params = { query: { format: /** @type {const} */ ('openai') } };
    const call = this.#http.POST('/v1/vector_stores/search', { params, body, ...options });
    return /** @type {Promise<Schemas['PassagePage']>} */ (bodyOf(call));
  }
}

/** @param {string} id */
function at(id) {
  return { params: { path: { store_id: id } } };
}

/**
 * @param {string} id
 * @param {string} fileId
 */
function of(id, fileId) {
  return { params: { path: { store_id: id, file_id: fileId } } };
}
