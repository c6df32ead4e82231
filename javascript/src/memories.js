import { bodyOf, linesOf, streamOf, valueOf } from './connect.js';
import { InvalidInput } from './errors.js';
import { MemoriesOperations } from './memories_operations.js';

/** @typedef {import('./connect.js').CallOptions} CallOptions */
/** @typedef {import('./types.js').Schemas} Schemas */

/**
 * A page of a listing: as the query string of the route, with `filters` as an object.
 * @typedef {Omit<import('./types.js').QueryOf<'/v1/memories'>, 'filters'> & { filters?: Schemas['SelectionBody']['filters'] }} Listing
 */

const FILTERS = 50_000; // characters of filters in a query string: the server reads 64 KiB of a request's head

/** What is remembered. */
export class Memories extends MemoriesOperations {
  /**
   * Remembers a text. `created` is false where it was there already.
   *
   * @param {string | Schemas['NewMemoryBody']} memory
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['AddedMemory']>}
   */
  add(memory, options) {
    const body = typeof memory === 'string' ? { content: memory } : memory;
    return bodyOf(this.http.POST('/v1/memories', { body, ...options }));
  }

  /**
   * Remembers several texts: all of them, or none if one is wrong.
   *
   * @param {(string | Schemas['NewMemoryBody'])[]} memories
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['AddedList']>}
   */
  addMany(memories, options) {
    const body = { memories: memories.map((memory) => (typeof memory === 'string' ? { content: memory } : memory)) };
    return bodyOf(this.http.POST('/v1/memories/batch', { body, ...options }));
  }

  /**
   * The memories that answer a question, best first.
   *
   * @param {string | Schemas['SearchBody']} query
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['SearchResult']>}
   */
  search(query, options) {
    const body = typeof query === 'string' ? { query } : query;
    return bodyOf(this.http.POST('/v1/memories/search', { body, ...options }));
  }

  /**
   * A page of memories, the newest first; `after: page.last_id` asks for the next one. Filters go into the address, so
   * they cannot be as long as those of `search`, `count` and `export`.
   *
   * @param {Listing} [listing]
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['Page']>}
   */
  async list({ filters, ...listing } = {}, options) {
    const text = filters ? JSON.stringify(filters) : '';
    const query = text ? { ...listing, filters: text } : listing;
    if (encodeURIComponent(text).length > FILTERS) {
      throw new InvalidInput('filters: are too long for a listing; use search or export, or list in parts', { param: 'filters' });
    }
    return bodyOf(this.http.GET('/v1/memories', { params: { query }, ...options }));
  }

  /**
   * How many memories a selection names.
   *
   * @param {Schemas['SelectionBody']} [selection]
   * @param {CallOptions} [options]
   * @returns {Promise<number>}
   */
  async count(selection = {}, options) {
    return (await bodyOf(this.http.POST('/v1/memories/count', { body: selection, ...options }))).count;
  }

  /**
   * Counts a use of memories: each gets one more `access_count`, and its `last_accessed_at`.
   *
   * @param {string[]} ids at most 1,000
   * @param {CallOptions} [options]
   * @returns {Promise<number>} how many of them there are
   */
  async countAccess(ids, options) {
    return (await bodyOf(this.http.POST('/v1/memories/count_access', { body: { ids }, ...options }))).count;
  }

  /**
   * The lines of an export as they come: a header, then a memory a line.
   *
   * @param {Schemas['ExportBody']} [selection]
   * @param {CallOptions} [options]
   * @returns {AsyncGenerator<Record<string, unknown>, void, undefined>}
   */
  async *export(selection = {}, options) {
    const call = this.http.POST('/v1/memories/export', { body: selection, parseAs: 'stream', ...options });
    for await (const line of linesOf(await streamOf(call))) yield valueOf(line);
  }
}
