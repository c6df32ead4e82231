import { bodyOf } from './connect.js';

/** @typedef {import('./connect.js').CallOptions} CallOptions */
/** @typedef {import('./types.js').Schemas} Schemas */

/** Facts, which are taken out of what was said, and their versions. */
export class Facts {
  #http;

  /** @param {import('./connect.js').Http} http */
  constructor(http) {
    this.#http = http;
  }

  /**
   * Takes facts out of what was said in a session since the last time.
   *
   * @param {string} sessionId
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['Extraction']>}
   */
  extract(sessionId, options) {
    const params = { path: { session_id: sessionId } };
    return bodyOf(this.#http.POST('/v1/sessions/{session_id}/extract', { params, ...options }));
  }

  /**
   * Facts with the versions that they superseded, those stored last first, and which of them held `at` a moment.
   *
   * @param {import('./types.js').QueryOf<'/v1/memories/timeline'>} [query]
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['FactTimeline']>}
   */
  timeline(query = {}, options) {
    return bodyOf(this.#http.GET('/v1/memories/timeline', { params: { query }, ...options }));
  }

  /**
   * The versions of a fact, in the order in which they hold.
   *
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['FactVersions']>}
   */
  history(id, options) {
    return bodyOf(this.#http.GET('/v1/memories/{id}/history', { params: { path: { id } }, ...options }));
  }

  /**
   * Notes that a person found a fact right: its confidence becomes 1.
   *
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['MemoryObject']>}
   */
  confirm(id, options) {
    return bodyOf(this.#http.POST('/v1/memories/{id}/confirm', { params: { path: { id } }, ...options }));
  }

  /**
   * Takes a fact back, so that what it superseded holds again.
   *
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['UndoneFact']>}
   */
  undo(id, options) {
    return bodyOf(this.#http.POST('/v1/memories/{id}/undo', { params: { path: { id } }, ...options }));
  }

  /**
   * Merges equivalent facts of a selection.
   *
   * @param {Schemas['SelectionBody']} [selection]
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['Consolidation']>}
   */
  consolidate(selection = {}, options) {
    return bodyOf(this.#http.POST('/v1/memories/consolidate', { body: selection, ...options }));
  }
}
