import { bodyOf } from './connect.js';

/** @typedef {import('./connect.js').CallOptions} CallOptions */
/** @typedef {import('./types.js').Schemas} Schemas */

/** Sessions, and what was said in them. */
export class Sessions {
  #http;

  /** @param {import('./connect.js').Http} http */
  constructor(http) {
    this.#http = http;
  }

  /**
   * A page of sessions, the newest first.
   *
   * @param {import('./types.js').QueryOf<'/v1/sessions'>} [listing]
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['SessionPage']>}
   */
  list(listing, options) {
    return bodyOf(this.#http.GET('/v1/sessions', { params: { query: listing }, ...options }));
  }

  /**
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['Session']>}
   */
  get(id, options) {
    return bodyOf(this.#http.GET('/v1/sessions/{session_id}', { ...at(id), ...options }));
  }

  /**
   * A page of what was said in a session, the oldest first.
   *
   * @param {string} id
   * @param {import('./types.js').QueryOf<'/v1/sessions/{session_id}/messages'>} [listing]
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['MessagePage']>}
   */
  messages(id, listing, options) {
    const params = { path: { session_id: id }, query: listing };
    return bodyOf(this.#http.GET('/v1/sessions/{session_id}/messages', { params, ...options }));
  }

  /**
   * Closes a session, so that it is summarized.
   *
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['Session']>}
   */
  close(id, options) {
    return bodyOf(this.#http.POST('/v1/sessions/{session_id}/close', { ...at(id), ...options }));
  }

  /**
   * Summarizes a session now.
   *
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['Session']>}
   */
  summarize(id, options) {
    return bodyOf(this.#http.POST('/v1/sessions/{session_id}/summarize', { ...at(id), ...options }));
  }

  /**
   * Deletes a session with what was said in it.
   *
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['DeletedSession']>}
   */
  delete(id, options) {
    return bodyOf(this.#http.DELETE('/v1/sessions/{session_id}', { ...at(id), ...options }));
  }

  /**
   * Changes the text of a message.
   *
   * @param {string} id
   * @param {string} messageId
   * @param {string} content
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['Message']>}
   */
  updateMessage(id, messageId, content, options) {
    const params = { path: { session_id: id, message_id: messageId } };
    return bodyOf(
      this.#http.POST('/v1/sessions/{session_id}/messages/{message_id}', { params, body: { content }, ...options }),
    );
  }

  /**
   * @param {string} id
   * @param {string} messageId
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['DeletedMessage']>}
   */
  deleteMessage(id, messageId, options) {
    const params = { path: { session_id: id, message_id: messageId } };
    return bodyOf(this.#http.DELETE('/v1/sessions/{session_id}/messages/{message_id}', { params, ...options }));
  }
}

/** @param {string} id */
function at(id) {
  return { params: { path: { session_id: id } } };
}
