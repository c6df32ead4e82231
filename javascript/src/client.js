import { bodyOf, connect } from './connect.js';
import { Facts } from './facts.js';
import { Files } from './files.js';
import { Memories } from './memories.js';
import { Responses } from './responses.js';
import { Sessions } from './sessions.js';
import { Stores } from './stores.js';

/** @typedef {import('./connect.js').CallOptions} CallOptions */
/** @typedef {import('./types.js').Schemas} Schemas */

/** A server of Memoranda. */
export class Memoranda {
  /** @param {import('./connect.js').Options} [options] */
  constructor(options = {}) {
    /** The server's routes by method and path, typed, for what has no method here. */
    this.http = connect(options);
    this.memories = new Memories(this.http);
    this.sessions = new Sessions(this.http);
    this.facts = new Facts(this.http);
    this.files = new Files(this.http);
    this.stores = new Stores(this.http);
    this.responses = new Responses(this.http);
  }

  /**
   * Keeps what was said, in a channel or a session; it is found as soon as this is done. A message with an `id` or with
   * `occurred_at` is kept once, however often it is sent.
   *
   * @param {Schemas['ObserveBody']} said
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['ObservedList']>}
   */
  observe(said, options) {
    return bodyOf(this.http.POST('/v1/messages', { body: said, ...options }));
  }

  /**
   * A prompt for a question, made of what is remembered and known.
   *
   * @param {string | Schemas['ContextBody']} query
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['Context']>}
   */
  context(query, options) {
    const body = typeof query === 'string' ? { query } : query;
    return bodyOf(this.http.POST('/v1/context', { body, ...options }));
  }

  /**
   * The vectors of texts, by the server's embedding model.
   *
   * @param {string[]} texts
   * @param {{ task?: 'document' | 'query' } & CallOptions} [options] `query` for questions that are asked of documents.
   * @returns {Promise<number[][]>}
   */
  async embed(texts, { task = 'document', ...options } = {}) {
    const call = this.http.POST('/v1/embeddings', { body: { input: texts, input_type: task }, ...options });
    return (await bodyOf(call)).data.map((one) => /** @type {number[]} */ (one.embedding));
  }
}
