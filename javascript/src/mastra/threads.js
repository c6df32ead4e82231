/**
 * Threads of a Mastra storage as records: `updatedAt` is the moment, and the title the text, so that each can be changed
 * without the rest.
 *
 * @module
 */
import { isDeepStrictEqual } from 'node:util';

import { calculatePagination, normalizePerPage } from '@mastra/core/storage';

import { NotFound } from '../errors.js';
import { each } from './requests.js';
import { momentOf } from './rows.js';
import { sessionOf } from './said.js';

/** @typedef {import('@mastra/core/memory').StorageThreadType} Thread */
/** @typedef {import('@mastra/core/storage').StorageListThreadsInput} ListInput */
/** @typedef {import('@mastra/core/storage').StorageListThreadsOutput} ListOutput */
/** @typedef {import('./rows.js').Memory} Memory */

const KIND = 'thread';

export class Threads {
  #records;

  /** @param {import('./records.js').Records} records */
  constructor(records) {
    this.#records = records;
  }

  /**
   * @param {string} id
   * @param {string} [resourceId]
   * @returns {Promise<Thread | null>}
   */
  async get(id, resourceId) {
    const memory = await this.#records.get(this.#id(id));
    const thread = memory && (await this.#thread(memory));
    return thread && (resourceId === undefined || thread.resourceId === resourceId) ? thread : null;
  }

  /** @param {Thread} thread */
  async save(thread) {
    const { title, updatedAt, ...value } = thread;
    const draft = {
      id: this.#id(thread.id), kind: KIND, user: thread.resourceId, session: sessionOf(thread.id),
      at: new Date(updatedAt), text: textOf(title), value,
    };
    await this.#records.inTurn(draft.id, () => this.#records.write([draft]));
  }

  /**
   * Changes what is given; keys of the metadata that are not given stay.
   *
   * @param {string} id
   * @param {{ title?: string, metadata?: Record<string, unknown> }} change
   * @returns {Promise<Thread>}
   */
  async update(id, { title, metadata }) {
    return this.#records.inTurn(this.#id(id), async () => {
      const memory = await this.#records.get(this.#id(id));
      const thread = memory && (await this.#thread(memory));
      if (!thread) throw new NotFound(`Thread with id ${id} not found`, { code: 'not_found' });
      const changed = { ...thread, ...(metadata ? { metadata: { ...thread.metadata, ...metadata } } : {}) };
      const { title: _title, updatedAt: _updatedAt, ...value } = changed;
      const at = new Date();
      await this.#records.change(memory, {
        at, ...(title === undefined ? {} : { text: textOf(title) }), ...(metadata ? { value } : {}),
      });
      return { ...changed, ...(title === undefined ? {} : { title }), updatedAt: at };
    });
  }

  /**
   * Sets `updatedAt` to now, in threads that there are.
   *
   * @param {Iterable<string>} ids
   */
  async touch(ids) {
    const now = new Date();
    await each([...new Set(ids)], (id) => this.#records.touch(this.#id(id), now));
  }

  /**
   * A page of threads by `field`. All threads of the resource are read for it.
   *
   * @param {{ field: 'createdAt' | 'updatedAt', direction: 'ASC' | 'DESC' }} order
   * @param {ListInput} input
   * @returns {Promise<ListOutput>}
   */
  async list({ field, direction }, { page = 0, perPage: asked, filter }) {
    const size = normalizePerPage(asked, 100);
    const { offset, perPage } = calculatePagination(page, asked, size);
    const where = { kind: KIND, ...(filter?.resourceId ? { scopes: [`user:${filter.resourceId}`] } : {}) };
    const conditions = Object.entries(filter?.metadata ?? {});
    const rows = await this.#records.ordered(where, 'asc', Infinity);
    const threads = (await each(rows, (memory) => this.#thread(memory))).filter((thread) => thread !== null);
    const passed = threads.filter(({ metadata }) => conditions.every(([key, value]) => isDeepStrictEqual(metadata?.[key], value)));
    const sign = direction === 'ASC' ? 1 : -1;
    passed.sort((one, other) => sign * (one[field].getTime() - other[field].getTime()));
    const end = offset + size;
    return { threads: passed.slice(offset, end), total: passed.length, page, perPage, hasMore: end < passed.length };
  }

  /** @param {string} id */
  #id(id) {
    return this.#records.idOf(KIND, id);
  }

  /**
   * @param {Memory} memory
   * @returns {Promise<Thread | null>}
   */
  async #thread(memory) {
    const value = await this.#records.valueOf(memory);
    if (value === undefined) return null;
    const title = JSON.parse(memory.content);
    const dates = { createdAt: new Date(value.createdAt), updatedAt: momentOf(memory) };
    return { ...value, ...(title === null ? {} : { title }), ...dates };
  }
}

/** @param {string | undefined} title */
function textOf(title) {
  return JSON.stringify(title ?? null);
}
