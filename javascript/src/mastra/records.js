/**
 * JSON values of a Mastra storage as memories of kind `item`, which searches of memories do not see.
 *
 * @module
 */
import { Conflict, InvalidInput, NotFound } from '../errors.js';
import { memoryId } from './entries.js';
import { isThere, taken } from './requests.js';
import { batches, during, headOf, momentOf, partsOf, rowsOf, sorted, valueIn, withoutValue } from './rows.js';

/** @typedef {import('./rows.js').Memory} Memory */
/** @typedef {import('./rows.js').NewMemory} NewMemory */
/** @typedef {import('./rows.js').Order} Order */
/** @typedef {import('./filters.js').Filter} Filter */
/** @typedef {Omit<import('./rows.js').Draft, 'source' | 'channel'> & { kind: string }} Draft */

/**
 * Which records: those of a kind in any of the scopes that pass all filters.
 * @typedef {object} Where
 * @property {string} kind
 * @property {string[]} [scopes] All of the store without them.
 * @property {Filter[]} [filters]
 */

const KINDS = /** @type {['item']} */ (['item']);
const PAGE = 500; // rows of a listing
const ATTEMPTS = 5; // to write or read one record while others write or delete it

/** The records of one store. A record belongs to a user, and to a session where it has one. */
export class Records {
  #memories;
  #store;
  /** @type {Map<string, Promise<unknown>>} */
  #turns = new Map();

  /**
   * @param {import('../memories.js').Memories} memories
   * @param {string} name Keeps several stores on one server apart.
   */
  constructor(memories, name) {
    this.#memories = memories;
    this.#store = `${name}:memory`;
  }

  /**
   * The id of a record.
   *
   * @param {string} kind
   * @param {string} id
   */
  idOf(kind, id) {
    return memoryId(this.#store, kind, id);
  }

  // --- writing ---------------------------------------------------------------------------------------------

  /**
   * Writes records in their order; one whose id is there is replaced. Returns by id the memories of those that were there.
   * New records that fit in 500 memories are written all or none.
   *
   * @param {Draft[]} drafts
   * @returns {Promise<Map<string, Memory>>}
   */
  async write(drafts) {
    /** @type {Map<string, Memory>} */
    const previous = new Map();
    for (const batch of batches(drafts.map((draft) => this.#rows(draft)))) {
      const written = await this.#added(batch.flat());
      for (const rows of batch) {
        const { id } = headOf(rows);
        const found = written?.get(id);
        if (found?.created) continue;
        const before = found && (await this.#replaced(rows, found)) ? found : await this.#put(rows);
        if (before) previous.set(id, before);
      }
    }
    return previous;
  }

  /**
   * Changes fields of a record that was read: its value, its text, its moment. Other fields stay.
   *
   * @param {Memory} memory
   * @param {{ value?: unknown, text?: string, at: Date }} change
   */
  async change(memory, { value, text, at }) {
    const { user_id: user, session_id: session, metadata } = memory;
    const draft = { id: memory.id, kind: '', user, session, at, value };
    const rows = value === undefined ? [] : this.#rows(draft);
    const parts = rows.slice(0, -1);
    if (parts.length) await this.#memories.addMany(parts);
    await this.#memories.update(memory.id, {
      occurred_at: at.toISOString(),
      ...(text === undefined ? {} : { content: text }),
      ...(rows.length ? { metadata: { ...withoutValue(metadata), ...headOf(rows).metadata } } : {}),
    });
    if (rows.length) await this.#deleteParts(memory);
  }

  /**
   * Sets the moment of a record; returns false if there is none.
   *
   * @param {string} id
   * @param {Date} at
   */
  async touch(id, at) {
    return isThere(this.#memories.update(id, { occurred_at: at.toISOString() }));
  }

  /**
   * Deletes a record that was read; returns false if it was not there.
   *
   * @param {Memory} memory
   */
  async delete(memory) {
    const deleted = await isThere(this.#memories.delete(memory.id));
    await this.#deleteParts(memory);
    return deleted;
  }

  /**
   * Erases the records of a scope for good; without one all of the store.
   *
   * @param {string} [scope]
   */
  async erase(scope) {
    const filters = { type: 'eq', key: '$channel_id', value: this.#store };
    await this.#memories.forget({ kinds: KINDS, scopes: [scope ?? `channel:${this.#store}`], filters });
  }

  /**
   * Runs work on something when what was begun before on the same has ended.
   *
   * @template T
   * @param {string} id
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  async inTurn(id, work) {
    const before = this.#turns.get(id) ?? Promise.resolve();
    const mine = before.catch(() => {}).then(work);
    this.#turns.set(id, mine);
    try {
      return await mine;
    } finally {
      if (this.#turns.get(id) === mine) this.#turns.delete(id);
    }
  }

  /**
   * What was there before; null if nothing was.
   *
   * @param {NewMemory[]} rows
   * @returns {Promise<Memory | null>}
   */
  async #put(rows) {
    const head = headOf(rows);
    /** @type {Memory | null} */
    let moved = null;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const found = await this.get(head.id);
      if (found && found.user_id === head.user_id && found.session_id === head.session_id) {
        if (rows.length > 1) await this.#memories.addMany(rows.slice(0, -1));
        if (await this.#replaced(rows, found)) return moved ?? found;
      } else {
        if (found) await this.delete(found); // the place of a memory cannot be changed
        moved ??= found;
        if ((await this.#added(rows))?.get(head.id)?.created) return moved;
      }
    }
    throw new Conflict(`${head.id}: others keep writing this record; write it again`, { code: 'conflict' });
  }

  /**
   * @param {NewMemory[]} rows Those before the last are written.
   * @param {Memory} found
   */
  async #replaced(rows, found) {
    const { id, content, metadata, occurred_at: at } = headOf(rows);
    const change = { content, metadata, ...(at ? { occurred_at: at } : {}) };
    if (!(await isThere(this.#memories.update(id, change)))) return false;
    await this.#deleteParts(found);
    return true;
  }

  /**
   * The outcomes by id; null if one of the rows is in another place or has another text, and none was written.
   *
   * @param {NewMemory[]} rows
   */
  async #added(rows) {
    try {
      const { data } = await this.#memories.addMany(rows);
      return new Map(data.map((outcome) => [outcome.id, outcome]));
    } catch (error) {
      if (error instanceof Conflict) return null;
      throw error;
    }
  }

  /** @param {Memory} memory */
  async #deleteParts(memory) {
    for (const { id } of await this.#parts(memory)) await isThere(this.#memories.delete(id));
  }

  /** @param {Draft} draft */
  #rows({ kind, ...draft }) {
    return rowsOf({ ...draft, channel: this.#store, source: this.#source(kind) });
  }

  // --- reading ---------------------------------------------------------------------------------------------

  /**
   * The memory of a record; null if there is none.
   *
   * @param {string} id
   * @returns {Promise<Memory | null>}
   */
  async get(id) {
    try {
      return await this.#memories.get(id);
    } catch (error) {
      if (error instanceof NotFound) return null;
      throw error;
    }
  }

  /**
   * The value of a record that was read; undefined if it was deleted meanwhile.
   *
   * @param {Memory} memory
   * @returns {Promise<any>}
   */
  async valueOf(memory) {
    /** @type {Memory | null} */
    let now = memory;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (now === null) return undefined;
      const apart = partsOf(now);
      const memories = apart ? await this.#parts(now) : [now];
      if (memories.length === (apart?.count ?? 1)) return valueIn(memories);
      now = await this.get(memory.id);
    }
    throw new Conflict(`${memory.id}: others keep replacing this record; read it again`, { code: 'conflict' });
  }

  /**
   * How many records there are.
   *
   * @param {Where} where
   */
  async count(where) {
    return this.#memories.count(this.#selection(where));
  }

  /**
   * The first records by their moments, those of the same moment as they were written; with `desc` the last ones.
   *
   * Listings are in the order of writing. So the limit is read in that order, and then whatever else lies on this side of
   * the farthest of them; mostly there is nothing else, and counting tells.
   *
   * @param {Where} where
   * @param {Order} order
   * @param {number} limit
   * @returns {Promise<Memory[]>}
   */
  async ordered(where, order, limit) {
    if (limit <= 0) return [];
    const rows = sorted(await taken(this.#listed(this.#selection(where), order, limit), limit), order);
    const farthest = rows.at(-1);
    if (!farthest || rows.length < limit) return rows;
    const near = during(order === 'desc' ? 'gte' : 'lte', momentOf(farthest));
    const nearer = { ...where, filters: [...(where.filters ?? []), near] };
    if ((await this.count(nearer)) === rows.length) return rows;
    const all = await taken(this.#listed(this.#selection(nearer), order, PAGE), Infinity);
    return sorted(all, order).slice(0, limit);
  }

  /**
   * @param {Where} where
   */
  #selection({ kind, scopes = [`channel:${this.#store}`], filters = [] }) {
    const all = /** @type {Filter} */ ({ type: 'and', filters });
    return { kinds: KINDS, source: this.#source(kind), scopes, ...(filters.length ? { filters: all } : {}) };
  }

  /** @param {string} kind */
  #source(kind) {
    return `${this.#store}/${kind}`;
  }

  /** @param {Memory} memory */
  async #parts(memory) {
    const apart = partsOf(memory);
    if (!apart) return [];
    const scopes = [memory.session_id === null ? `channel:${this.#store}` : `session:${memory.session_id}`];
    return taken(this.#listed({ kinds: KINDS, scopes, source: apart.source }, 'asc', PAGE), Infinity);
  }

  /**
   * The memories of a selection as they were written; `first` are read at first. If the last one of a page is deleted
   * before the next page is read, reading begins again; none comes twice.
   *
   * @param {Omit<import('../memories.js').Listing, 'order' | 'limit' | 'after'>} selection
   * @param {Order} order
   * @param {number} first
   * @returns {AsyncGenerator<Memory, void, undefined>}
   */
  async *#listed(selection, order, first) {
    /** @type {string | undefined} */
    let after;
    const yielded = new Set();
    for (;;) {
      const limit = yielded.size ? PAGE : Math.min(first, PAGE);
      let page;
      try {
        page = await this.#memories.list({ ...selection, order, limit, ...(after === undefined ? {} : { after }) });
      } catch (error) {
        if (!(error instanceof InvalidInput && error.param === 'after')) throw error;
        after = undefined;
        continue;
      }
      for (const memory of page.data) {
        if (!yielded.has(memory.id)) yield memory;
        yielded.add(memory.id);
      }
      if (!page.has_more || page.last_id === null) return;
      after = page.last_id;
    }
  }
}
