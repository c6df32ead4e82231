import { randomUUID } from 'node:crypto';

import { MastraVector } from '@mastra/core/vector';

import { bodyOf } from '../connect.js';
import { DimensionMismatch, InvalidInput, NotFound } from '../errors.js';
import { contentOf, memoryId, OWN, unwrapped, wrapped } from './entries.js';
import { filterFrom } from './filters.js';

/** @typedef {import('../types.js').Schemas} Schemas */
/** @typedef {Schemas['MemoryObject']} Memory */
/** @typedef {import('./entries.js').Metadata} Metadata */
/** @typedef {{ id: string, vector: number[], metadata: Metadata }} Entry */

const PAGE = 1000; // rows of a listing
const BATCH = 500; // vectors in a request
const KINDS = /** @type {['item']} */ (['item']);

/**
 * A vector store of Mastra on a server. Vectors are those of the server's embedding model, whose number of dimensions an
 * index has; the metric is the cosine. An entry is a memory of kind `item` that belongs to nobody, so the key must be one
 * of an application (`service` or `admin`).
 *
 * @extends {MastraVector<Record<string, any>>}
 */
export class MemorandaVector extends MastraVector {
  #memoranda;
  #name;

  /**
   * @param {{ memoranda: import('../client.js').Memoranda, id?: string, name?: string }} options `name` keeps several
   *   stores on one server apart; `id` is Mastra's.
   */
  constructor({ memoranda, id = 'memoranda', name = 'mastra' }) {
    super({ id });
    this.#memoranda = memoranda;
    this.#name = name;
  }

  // --- indexes ---------------------------------------------------------------------------------------------

  /**
   * @param {import('@mastra/core/vector').CreateIndexParams} params
   * @returns {Promise<void>}
   */
  async createIndex({ indexName, dimension, metric = 'cosine' }) {
    if (metric !== 'cosine') throw new InvalidInput(`metric: is ${metric}; use cosine`, { param: 'metric' });
    const { data } = await bodyOf(this.#memoranda.http.GET('/v1/models'));
    const model = data.find((one) => one.dimensions !== null);
    if (model && model.dimensions !== dimension) {
      const says = `dimension: is ${dimension}; vectors of the server's model ${model.id} have ${model.dimensions}`;
      throw new DimensionMismatch(says, { param: 'dimension' });
    }
    await this.#memoranda.memories.add({
      ...this.#place(this.#name), id: this.#indexId(indexName), content: indexName, metadata: { [`${OWN}dimension`]: dimension },
    });
  }

  /** @returns {Promise<string[]>} */
  async listIndexes() {
    const names = [];
    for await (const { content } of this.#listed(this.#name, null)) names.push(content);
    return names.sort();
  }

  /**
   * @param {import('@mastra/core/vector').DescribeIndexParams} params
   * @returns {Promise<import('@mastra/core/vector').IndexStats>}
   */
  async describeIndex({ indexName }) {
    const dimension = await this.#dimension(indexName);
    const count = await this.#memoranda.memories.count(this.#selection(this.#channel(indexName), null));
    return { dimension, count, metric: 'cosine' };
  }

  /**
   * @param {import('@mastra/core/vector').DeleteIndexParams} params
   * @returns {Promise<void>}
   */
  async deleteIndex({ indexName }) {
    await this.#dimension(indexName);
    await this.#memoranda.memories.forget(this.#selection(this.#channel(indexName), null));
    await this.#memoranda.memories.delete(this.#indexId(indexName));
  }

  // --- writing ---------------------------------------------------------------------------------------------

  /**
   * Writes vectors; one of an id that is there replaces it. What `deleteFilter` names is deleted when the new vectors are
   * there, in a request of its own.
   *
   * @param {import('@mastra/core/vector').UpsertVectorParams<Record<string, any>>} params
   * @returns {Promise<string[]>}
   */
  async upsert({ indexName, vectors, metadata = [], ids, sparseVectors, deleteFilter }) {
    refuse('sparseVectors', sparseVectors);
    for (const [name, values] of /** @type {const} */ ([['metadata', metadata], ['ids', ids ?? []]])) {
      if (values.length && values.length !== vectors.length) {
        throw new InvalidInput(`${name}: has ${values.length} entries for ${vectors.length} vectors`, { param: name });
      }
    }
    const dimension = await this.#dimension(indexName);
    const entries = vectors.map((vector, i) => ({ id: ids?.[i] ?? randomUUID(), vector, metadata: metadata[i] ?? {} }));
    entries.forEach(({ vector }, i) => checkLength(vector, dimension, `vectors[${i}]`));
    const old = deleteFilter ? await this.#ids(indexName, { filter: deleteFilter }) : [];
    await this.#write(indexName, entries);
    const written = new Set(entries.map(({ id }) => id));
    await this.#forget(indexName, old.filter((id) => !written.has(id)));
    return entries.map(({ id }) => id);
  }

  /**
   * Changes the vector of an entry, its metadata, which is replaced, or both; with `filter` those of all that match.
   *
   * @param {import('@mastra/core/vector').UpdateVectorParams<Record<string, any>>} params
   * @returns {Promise<void>}
   */
  async updateVector({ indexName, id, filter, update }) {
    if (!update.vector && !update.metadata) {
      throw new InvalidInput('update: is empty; give vector, metadata or both', { param: 'update' });
    }
    const dimension = await this.#dimension(indexName);
    if (update.vector) checkLength(update.vector, dimension, 'update.vector');
    const chosen = await this.#ids(indexName, { ids: id === undefined ? undefined : [id], filter });
    if (id !== undefined && !chosen.length) throw new NotFound(`no vector ${id} in ${indexName}`, { code: 'not_found' });
    const entries = await this.#exported(indexName, chosen);
    const changed = entries.map((entry) => ({
      id: entry.id, vector: update.vector ?? entry.vector, metadata: update.metadata ?? entry.metadata,
    }));
    await this.#write(indexName, changed);
  }

  /**
   * @param {import('@mastra/core/vector').DeleteVectorParams} params
   * @returns {Promise<void>}
   */
  async deleteVector({ indexName, id }) {
    await this.deleteVectors({ indexName, ids: [id] });
  }

  /**
   * @param {import('@mastra/core/vector').DeleteVectorsParams<Record<string, any>>} params
   * @returns {Promise<void>}
   */
  async deleteVectors({ indexName, ids, filter }) {
    await this.#dimension(indexName);
    await this.#forget(indexName, await this.#ids(indexName, { ids, filter }));
  }

  // --- reading ---------------------------------------------------------------------------------------------

  /**
   * The vectors that are closest to one, with their cosine as `score`; without `queryVector` those that match the filter,
   * with the score 0.
   *
   * @param {import('@mastra/core/vector').QueryVectorParams<Record<string, any>>} params
   * @returns {Promise<import('@mastra/core/vector').QueryResult[]>}
   */
  async query({ indexName, queryVector, topK = 10, filter, includeVector = false, sparseVector }) {
    refuse('sparseVector', sparseVector);
    const dimension = await this.#dimension(indexName);
    const conditions = filterFrom(filter, OWN);
    if (!queryVector && !conditions) throw new InvalidInput('queryVector: is missing; give it, filter or both', { param: 'queryVector' });
    if (queryVector) checkLength(queryVector, dimension, 'queryVector');
    const found = queryVector
      ? await this.#nearest(indexName, queryVector, topK, conditions)
      : (await this.#first(indexName, topK, conditions)).map((memory) => ({ ...unwrapped(memory), score: 0 }));
    if (!includeVector) return found;
    const entries = await this.#exported(indexName, found.map(({ id }) => id));
    const vectors = new Map(entries.map(({ id, vector }) => [id, vector]));
    return found.map((one) => ({ ...one, vector: vectors.get(one.id) }));
  }

  /**
   * @param {string} indexName
   * @param {number[]} embedding
   * @param {number} limit
   * @param {import('./filters.js').Filter | null} conditions
   */
  async #nearest(indexName, embedding, limit, conditions) {
    const { results } = await this.#memoranda.memories.search({
      ...this.#selection(this.#channel(indexName), conditions),
      query: indexName, mode: 'dense', embedding, limit, threshold: 0, explain: true,
    });
    return results.map(({ memory, explanation }) => ({ ...unwrapped(memory), score: explanation?.cosine ?? 0 }));
  }

  /**
   * @param {string} indexName
   * @param {number} limit
   * @param {import('./filters.js').Filter | null} conditions
   */
  async #first(indexName, limit, conditions) {
    const memories = [];
    for await (const memory of this.#listed(this.#channel(indexName), conditions)) {
      if (memories.length === limit) break;
      memories.push(memory);
    }
    return memories;
  }

  // --- entries ---------------------------------------------------------------------------------------------

  /**
   * @param {string} indexName
   * @param {Entry[]} entries
   */
  async #write(indexName, entries) {
    const last = [...new Map(entries.map((entry) => [entry.id, entry])).values()];
    for (let start = 0; start < last.length; start += BATCH) {
      const part = last.slice(start, start + BATCH);
      for (const id of await this.#ids(indexName, { ids: part.map((entry) => entry.id) })) {
        await this.#memoranda.memories.delete(this.#entryId(indexName, id));
      }
      await this.#memoranda.memories.addMany(
        part.map(({ id, vector, metadata }) => ({
          ...this.#place(this.#channel(indexName)),
          id: this.#entryId(indexName, id),
          content: contentOf(id, metadata),
          metadata: wrapped(id, metadata),
          embedding: vector,
        })),
      );
    }
  }

  /**
   * @param {string} indexName
   * @param {string[]} ids
   */
  async #forget(indexName, ids) {
    if (ids.length) await this.#memoranda.memories.forget({ ids: ids.map((id) => this.#entryId(indexName, id)) });
  }

  /**
   * The ids that are there, of these or of those that match.
   *
   * @param {string} indexName
   * @param {{ ids?: string[], filter?: Record<string, any> }} which
   */
  async #ids(indexName, { ids, filter }) {
    if ((ids === undefined) === (filter === undefined)) {
      throw new InvalidInput('ids: goes without filter; give one of them', { param: 'ids' });
    }
    const conditions = ids ? named(ids) : filterFrom(filter, OWN);
    if (!conditions) throw new InvalidInput('filter: is empty; name a condition', { param: 'filter' });
    const found = [];
    for await (const memory of this.#listed(this.#channel(indexName), conditions)) found.push(unwrapped(memory).id);
    return found;
  }

  /**
   * Entries with their vectors.
   *
   * @param {string} indexName
   * @param {string[]} ids
   */
  async #exported(indexName, ids) {
    /** @type {Entry[]} */
    const entries = [];
    if (!ids.length) return entries;
    const selection = this.#selection(this.#channel(indexName), named(ids));
    for await (const line of this.#memoranda.memories.export({ ...selection, vectors: true })) {
      const row = /** @type {any} */ (line);
      if (row.metadata) entries.push({ ...unwrapped(row), vector: vectorOf(row) });
    }
    return entries;
  }

  /**
   * @param {string} channel
   * @param {import('./filters.js').Filter | null} filters
   * @returns {AsyncGenerator<Memory, void, undefined>}
   */
  async *#listed(channel, filters) {
    /** @type {string | undefined} */
    let after;
    for (;;) {
      const listing = { kinds: KINDS, scopes: [`channel:${channel}`], limit: PAGE };
      const page = await this.#memoranda.memories.list({ ...listing, ...(filters ? { filters } : {}), ...(after ? { after } : {}) });
      yield* page.data;
      if (!page.has_more || page.last_id === null) return;
      after = page.last_id;
    }
  }

  /** @param {string} indexName */
  async #dimension(indexName) {
    const memory = await this.#memoranda.memories.get(this.#indexId(indexName));
    return /** @type {number} */ (memory.metadata[`${OWN}dimension`]);
  }

  /**
   * @param {string} channel
   * @param {import('./filters.js').Filter | null} filters
   */
  #selection(channel, filters) {
    return { kinds: KINDS, scopes: [`channel:${channel}`], ...(filters ? { filters } : {}) };
  }

  /** @param {string} channel */
  #place(channel) {
    return { kind: /** @type {const} */ ('item'), channel_id: channel, user_id: null };
  }

  /** @param {string} indexName */
  #channel(indexName) {
    return `${this.#name}/${indexName}`;
  }

  /** @param {string} indexName */
  #indexId(indexName) {
    return memoryId(this.#name, indexName);
  }

  /**
   * @param {string} indexName
   * @param {string} id
   */
  #entryId(indexName, id) {
    return memoryId(this.#name, indexName, id);
  }
}

/**
 * @param {string[]} ids
 * @returns {import('./filters.js').Filter}
 */
function named(ids) {
  return { type: 'in', key: `${OWN}id`, value: ids };
}

/**
 * @param {number[]} vector
 * @param {number} dimension
 * @param {string} param
 */
function checkLength(vector, dimension, param) {
  if (vector.length !== dimension) {
    throw new DimensionMismatch(`${param}: has ${vector.length} numbers; the index has ${dimension} dimensions`, { param });
  }
}

/**
 * @param {string} param
 * @param {unknown} value
 */
function refuse(param, value) {
  if (value !== undefined) throw new InvalidInput(`${param}: is not supported; leave it out`, { param });
}

/**
 * The vector of a line of an export: float32, little-endian, in base64.
 *
 * @param {{ embeddings: { vector: string }[] }} line
 * @returns {number[]}
 */
function vectorOf({ embeddings: [first] }) {
  const bytes = Buffer.from(first?.vector ?? '', 'base64');
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(i * 4));
}
