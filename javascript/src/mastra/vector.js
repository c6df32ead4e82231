import { randomUUID } from 'node:crypto';

import { MastraVector } from '@mastra/core/vector';

import { bodyOf } from '../connect.js';
import { DimensionMismatch, InvalidInput, NotFound } from '../errors.js';
import { contentOf, escaped, latest, memoryId, nameIn, OWN, unwrapped, wrapped } from './entries.js';
import { filterFrom } from './filters.js';
import { each, isThere, refusedAs, taken } from './requests.js';

/** @typedef {import('../types.js').Schemas} Schemas */
/** @typedef {import('./entries.js').Metadata} Metadata */
/** @typedef {import('./entries.js').Row} Row */
/** @typedef {import('./filters.js').Filter} Filter */
/** @typedef {{ id: string, vector: number[], metadata: Metadata }} Entry */

const BATCH = 500; // vectors or ids in a request
const LISTS = { id: 'ids', vector: 'vectors', metadata: 'metadata' }; // the names of fields of entries in `upsert`
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
      ...place(this.#indexes()), id: this.#indexId(indexName), content: indexName, metadata: { [`${OWN}dimension`]: dimension },
    });
  }

  /** @returns {Promise<string[]>} */
  async listIndexes() {
    const names = [];
    for await (const { content } of this.#rows(this.#indexes(), null)) names.push(content);
    return names.sort();
  }

  /**
   * @param {import('@mastra/core/vector').DescribeIndexParams} params
   * @returns {Promise<import('@mastra/core/vector').IndexStats>}
   */
  async describeIndex({ indexName }) {
    const dimension = await this.#dimension(indexName);
    const count = await this.#memoranda.memories.count(selection(this.#channel(indexName), null));
    return { dimension, count, metric: 'cosine' };
  }

  /**
   * @param {import('@mastra/core/vector').DeleteIndexParams} params
   * @returns {Promise<void>}
   */
  async deleteIndex({ indexName }) {
    await this.#dimension(indexName);
    await this.#memoranda.memories.forget(selection(this.#channel(indexName), null));
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
    const old = deleteFilter ? await this.#chosen(indexName, whichOf({ filter: deleteFilter }, 'deleteFilter')) : [];
    await this.#write(indexName, entries, (at, field) => `${LISTS[field]}[${at}]`);
    await this.#deleteReplaced(indexName, ids?.length ? entries.map(({ id }) => id) : []);
    await this.#forget(old);
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
    const rows = latest(await this.#chosen(indexName, whichOf({ ids: id === undefined ? undefined : [id], filter }), true));
    if (id !== undefined && !rows.length) throw new NotFound(`no vector ${id} in ${indexName}`, { code: 'not_found' });
    const changed = rows.map((row) => {
      const { id, metadata } = unwrapped(row);
      return { id, vector: update.vector ?? vectorOf(row), metadata: update.metadata ?? metadata };
    });
    await this.#write(indexName, changed, (_, field) => `update.${field}`);
    await this.#deleteReplaced(indexName, changed.map((entry) => entry.id));
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
    await this.#forget(await this.#chosen(indexName, whichOf({ ids, filter })));
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
    const conditions = filterFrom(filter);
    if (!queryVector && !conditions) throw new InvalidInput('queryVector: is missing; give it, filter or both', { param: 'queryVector' });
    if (queryVector) checkLength(queryVector, dimension, 'queryVector');
    if (!(topK >= 1)) throw new InvalidInput(`topK: is ${topK}; give 1 or more`, { param: 'topK' });
    const found = queryVector
      ? await this.#nearest(indexName, queryVector, topK, conditions)
      : (await taken(this.#rows(this.#channel(indexName), conditions), topK)).map((row) => ({ row, score: 0 }));
    const now = new Set(latest(found.map(({ row }) => row).sort(byTime)));
    const results = found.filter(({ row }) => now.has(row)).map(({ row, score }) => ({ ...unwrapped(row), score }));
    if (!includeVector) return results;
    const rows = await this.#chosen(indexName, whichOf({ ids: results.map(({ id }) => id) }), true);
    const vectors = new Map(rows.map((row) => [unwrapped(row).id, vectorOf(row)]));
    return results.map((result) => ({ ...result, vector: vectors.get(result.id) }));
  }

  /**
   * @param {string} indexName
   * @param {number[]} embedding
   * @param {number} limit
   * @param {Filter | null} conditions
   */
  async #nearest(indexName, embedding, limit, conditions) {
    const search = this.#memoranda.memories.search({
      ...selection(this.#channel(indexName), conditions),
      query: indexName, mode: 'dense', embedding, limit, threshold: 0, explain: true,
    });
    const { results } = await refusedAs(search, (param) => param.replace(/^limit$/, 'topK').replace(/^filters/, 'filter'));
    return results.map(({ memory, explanation }) => ({ row: memory, score: explanation?.cosine ?? 0 }));
  }

  // --- entries ---------------------------------------------------------------------------------------------

  /**
   * Writes all entries or none, each as a new memory.
   *
   * @param {string} indexName
   * @param {Entry[]} entries
   * @param {import('./entries.js').Naming} nameOf
   */
  async #write(indexName, entries, nameOf) {
    const last = [...new Map(entries.map((entry, at) => [entry.id, { ...entry, at }])).values()];
    const channel = this.#channel(indexName);
    /** @type {{ id: string }[]} */
    const written = [];
    try {
      for (const batch of batches(last)) {
        const memories = batch.map(({ id, vector, metadata }) => ({
          ...place(channel), id: `item_${randomUUID()}`, content: contentOf(id, metadata), metadata: wrapped(id, metadata), embedding: vector,
        }));
        await refusedAs(this.#memoranda.memories.addMany(memories), (param) => nameIn(batch, param, nameOf));
        written.push(...memories);
      }
    } catch (error) {
      await this.#forget(written).catch(() => {}); // the first error says more
      throw error;
    }
  }

  /**
   * Deletes the memories of entries that were written again.
   *
   * @param {string} indexName
   * @param {string[]} ids
   */
  async #deleteReplaced(indexName, ids) {
    const rows = await this.#chosen(indexName, whichOf({ ids }));
    const now = new Set(latest(rows));
    await each(rows.filter((row) => !now.has(row)), ({ id }) => isThere(this.#memoranda.memories.delete(id)));
  }

  /** @param {{ id: string }[]} rows */
  async #forget(rows) {
    for (const batch of batches(rows)) await this.#memoranda.memories.forget({ ids: batch.map(({ id }) => id) });
  }

  /**
   * The memories of entries as they were written.
   *
   * @param {string} indexName
   * @param {Filter[]} which
   * @param {boolean} [vectors] Whether they come with their vectors.
   */
  async #chosen(indexName, which, vectors) {
    const rows = [];
    for (const conditions of which) {
      for await (const row of this.#rows(this.#channel(indexName), conditions, vectors)) rows.push(row);
    }
    return rows;
  }

  /**
   * The memories of a channel as they were written.
   *
   * @param {string} channel
   * @param {Filter | null} filters
   * @param {boolean} [vectors] Whether they come with their vectors.
   * @returns {AsyncGenerator<Row, void, undefined>}
   */
  async *#rows(channel, filters, vectors = false) {
    for await (const line of this.#memoranda.memories.export({ ...selection(channel, filters), vectors })) {
      if (line.metadata) yield /** @type {Row} */ (/** @type {unknown} */ (line));
    }
  }

  /** @param {string} indexName */
  async #dimension(indexName) {
    try {
      const memory = await this.#memoranda.memories.get(this.#indexId(indexName));
      return /** @type {number} */ (memory.metadata[`${OWN}dimension`]);
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
      throw new NotFound(`no index ${indexName}; create it`, { status: error.status, code: error.code, cause: error });
    }
  }

  /** The channel of the indexes themselves. */
  #indexes() {
    return escaped(this.#name);
  }

  /** @param {string} indexName */
  #channel(indexName) {
    return `${escaped(this.#name)}/${escaped(indexName)}`;
  }

  /** @param {string} indexName */
  #indexId(indexName) {
    return memoryId(this.#name, indexName);
  }
}

/**
 * @param {string} channel
 * @param {Filter | null} filters
 */
function selection(channel, filters) {
  return { kinds: KINDS, scopes: [`channel:${channel}`], ...(filters ? { filters } : {}) };
}

/** @param {string} channel */
function place(channel) {
  return { kind: /** @type {const} */ ('item'), channel_id: channel, user_id: null };
}

/**
 * The conditions that choose entries, for one request each.
 *
 * @param {{ ids?: string[], filter?: Record<string, any> }} which
 * @param {string} [name] The caller's name of the filter.
 * @returns {Filter[]}
 */
function whichOf({ ids, filter }, name = 'filter') {
  if ((ids === undefined) === (filter === undefined)) {
    throw new InvalidInput('ids: goes without filter; give one of them', { param: 'ids' });
  }
  if (ids) return batches(ids).map((batch) => ({ type: 'in', key: `${OWN}id`, value: batch }));
  const conditions = filterFrom(filter, name);
  if (!conditions) throw new InvalidInput(`${name}: is empty; name a condition`, { param: name });
  return [conditions];
}

/**
 * @template T
 * @param {T[]} values
 * @returns {T[][]}
 */
function batches(values) {
  return Array.from({ length: Math.ceil(values.length / BATCH) }, (_, i) => values.slice(i * BATCH, (i + 1) * BATCH));
}

/**
 * Orders memories as they were written.
 *
 * @param {Row} one
 * @param {Row} other
 */
function byTime(one, other) {
  return Date.parse(one.created_at) - Date.parse(other.created_at);
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
 * The vector of a memory that was read with it: float32, little-endian, in base64.
 *
 * @param {Row} row
 * @returns {number[]}
 */
function vectorOf({ embeddings = [] }) {
  const bytes = Buffer.from(embeddings[0]?.vector ?? '', 'base64');
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(i * 4));
}
