import { bodyOf, linesOf, streamOf, valueOf } from './connect.js';
import { errorFrom } from './errors.js';

/** @typedef {import('./connect.js').CallOptions} CallOptions */
/** @typedef {import('./types.js').Schemas} Schemas */
/** @typedef {Omit<Schemas['ResponseBody'], 'stream'>} Request */
/** @typedef {{ type: string, sequence_number: number, [name: string]: any }} Event */

/** Answers of a language model with memory and documents; OpenAI's Responses API. */
export class Responses {
  #http;

  /** @param {import('./connect.js').Http} http */
  constructor(http) {
    this.#http = http;
  }

  /**
   * @param {string | Request} request The request, or its input.
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['Response']>}
   */
  create(request, options) {
    const body = typeof request === 'string' ? { input: request } : request;
    const call = this.#http.POST('/v1/responses', { body, ...options });
    return /** @type {Promise<Schemas['Response']>} */ (bodyOf(call));
  }

  /**
   * The events of a response as they come. Whoever leaves the loop stops the model.
   *
   * @param {string | Request} request The request, or its input.
   * @param {CallOptions} [options]
   * @returns {AsyncGenerator<Event, void, undefined>}
   */
  async *stream(request, options) {
    const body = { ...(typeof request === 'string' ? { input: request } : request), stream: true };
    const call = this.#http.POST('/v1/responses', { body, parseAs: 'stream', ...options });
    for await (const line of linesOf(await streamOf(call))) {
      if (!line.startsWith('data: ')) continue;
      const event = valueOf(line.slice('data: '.length));
      if (event.type === 'error') throw errorFrom({ error: event }, { status: 500 });
      yield event;
    }
  }

  /**
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['Response']>}
   */
  get(id, options) {
    const params = { path: { response_id: id } };
    const call = this.#http.GET('/v1/responses/{response_id}', { params, ...options });
    return /** @type {Promise<Schemas['Response']>} */ (bodyOf(call));
  }

  /**
   * @param {string} id
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['DeletedResponse']>}
   */
  delete(id, options) {
    return bodyOf(this.#http.DELETE('/v1/responses/{response_id}', { params: { path: { response_id: id } }, ...options }));
  }
}
