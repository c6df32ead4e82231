/**
 * Messages of a Mastra storage as records, and what was said in them as messages of a session.
 *
 * @module
 */
import { calculatePagination, normalizePerPage } from '@mastra/core/storage';

import { InvalidInput } from '../errors.js';
import { OWN } from './entries.js';
import { each } from './requests.js';
import { during, momentOf } from './rows.js';
import { sessionOf, textOf } from './said.js';

/** @typedef {import('@mastra/core/memory').MastraDBMessage} Message */
/** @typedef {import('@mastra/core/storage').StorageListMessagesInput} ListInput */
/** @typedef {import('@mastra/core/storage').StorageListMessagesOutput} ListOutput */
/** @typedef {import('./rows.js').Memory} Memory */
/** @typedef {import('./filters.js').Filter} Filter */
/** @typedef {{ direction: 'ASC' | 'DESC' }} Direction */
/** @typedef {Omit<ListInput, 'threadId' | 'orderBy'>} Page */

/**
 * A message of which fields are changed.
 * @typedef {Partial<Omit<Message, 'content'>> & { id: string, content?: Partial<Message['content']> }} Change
 */

const KIND = 'message';
const SAID = `${OWN}said`; // whether a text of the message was observed

export class Messages {
  #records;
  #log;
  #observe;

  /**
   * @param {import('./records.js').Records} records
   * @param {import('./said.js').Log} log
   * @param {boolean} observe Whether what is said is observed.
   */
  constructor(records, log, observe) {
    this.#records = records;
    this.#log = log;
    this.#observe = observe;
  }

  // --- writing ---------------------------------------------------------------------------------------------

  /**
   * Writes messages; one whose id is there is replaced.
   *
   * @param {Message[]} messages
   * @param {{ observe?: boolean }} [options]
   */
  async save(messages, { observe = this.#observe } = {}) {
    const last = [...new Map(messages.map((message, i) => [message.id, checked(message, i)])).values()];
    const texts = new Map(last.map((message) => [message.id, observe ? textOf(message) : '']));
    const drafts = last.map(({ createdAt: at, ...value }) => ({
      id: this.#id(value.id), kind: KIND, user: value.resourceId, session: sessionOf(value.threadId), at, value,
      fields: { [SAID]: texts.get(value.id) !== '' },
    }));
    const previous = await this.#records.write(drafts);
    for (const { id, value, session, user, at } of drafts) {
      const before = previous.get(id);
      const isSame = before && before.session_id === session && before.user_id === user && +momentOf(before) === +at;
      if (before && (!isSame || texts.get(value.id) === '')) await this.#unsay(value.id, before);
    }
    await this.#log.observe(
      drafts.filter(({ value }) => texts.get(value.id) !== '').map(({ value, session, user, at }) => ({
        id: this.#saidId(value.id), session, user, role: value.role, content: texts.get(value.id) ?? '', at,
      })),
    );
  }

  /**
   * Changes fields of messages; of the content and its metadata the keys that are given. Returns those that there are.
   *
   * @param {Change[]} changes
   * @returns {Promise<{ messages: Message[], threads: string[] }>}
   */
  async update(changes) {
    /** @type {Message[]} */
    const updated = [];
    /** @type {string[]} */
    const threads = [];
    for (const change of changes) {
      await this.#records.inTurn(this.#id(change.id), async () => {
        const before = await this.#get(change.id);
        if (!before) return;
        const message = { ...before, ...given(change), content: merged(before.content, change.content) };
        await this.save([message]);
        threads.push(...[before, message].flatMap(({ threadId }) => threadId ?? []));
        updated.push(message);
      });
    }
    return { messages: updated, threads };
  }

  /**
   * Deletes messages; returns the threads in which they were.
   *
   * @param {string[]} ids
   * @returns {Promise<string[]>}
   */
  async delete(ids) {
    const threads = await each([...new Set(ids)], async (id) => {
      const memory = await this.#records.get(this.#id(id));
      if (!memory) return [];
      const value = await this.#records.valueOf(memory);
      await this.#unsay(id, memory);
      await this.#records.delete(memory);
      return value ? [/** @type {string} */ (value.threadId)] : [];
    });
    return threads.flat();
  }

  /**
   * Deletes what was observed of a thread.
   *
   * @param {string} threadId
   */
  async unsayThread(threadId) {
    const session = sessionOf(threadId);
    const said = /** @type {Filter} */ ({ type: 'eq', key: SAID, value: true });
    if (await this.#records.count({ kind: KIND, scopes: [`session:${session}`], filters: [said] })) {
      await this.#log.deleteSession(session);
    }
  }

  /**
   * @param {string} id
   * @param {Memory} memory
   */
  async #unsay(id, memory) {
    if (memory.metadata[SAID] && memory.session_id !== null) await this.#log.delete(memory.session_id, this.#saidId(id));
  }

  // --- reading ---------------------------------------------------------------------------------------------

  /**
   * The messages of these ids that there are, in the order of the ids.
   *
   * @param {string[]} ids
   * @returns {Promise<Message[]>}
   */
  async byId(ids) {
    const found = await each(ids, (id) => this.#get(id));
    return found.filter((message) => message !== null);
  }

  /**
   * A page of the messages of threads, or of a resource, by `createdAt`, with those that `include` names.
   *
   * @param {{ threads?: string[], resourceId?: string }} whose
   * @param {Direction} order
   * @param {Page} input
   * @returns {Promise<ListOutput>}
   */
  async list({ threads, resourceId }, { direction }, { page = 0, perPage: asked, filter, include = [], includeTotal = true }) {
    const size = normalizePerPage(asked, 40);
    const { offset, perPage } = calculatePagination(page, asked, size);
    const end = offset + size;
    if (!(page >= 0)) throw new Error('page must be >= 0');
    if (end > Number.MAX_SAFE_INTEGER && asked !== false) throw new Error('page value too large');
    const conditions = Object.entries(filter?.metadata ?? {});
    const isWhole = asked === false || conditions.length > 0;
    const where = {
      kind: KIND,
      scopes: threads ? threads.map((id) => `session:${sessionOf(id)}`) : [`user:${resourceId}`],
      filters: [...owned(resourceId), ...within(filter?.dateRange)],
    };
    const limit = size === 0 ? 0 : isWhole ? Infinity : end + 1;
    const rows = await this.#records.ordered(where, direction === 'ASC' ? 'asc' : 'desc', limit);
    const read = conditions.length ? (await this.#read(rows)).filter((message) => has(message, conditions)) : null;
    const messages = read ? read.slice(offset, end) : await this.#read(rows.slice(offset, end));
    const count = (read ?? rows).length;
    const total = count <= end || isWhole || !includeTotal ? count : await this.#records.count(where);
    const around = (await each(include, (one) => this.#around(one, resourceId))).flat();
    const all = [...new Map([...messages, ...around].map((message) => [message.id, message])).values()];
    const sign = direction === 'ASC' ? 1 : -1;
    if (around.length) all.sort((one, other) => sign * (+one.createdAt - +other.createdAt));
    const found = all.filter(({ threadId }) => !threads || threads.includes(threadId ?? ''));
    const isComplete = include.length > 0 && !read && found.length >= total;
    return { messages: all, total, page, perPage, hasMore: count > end && !isComplete };
  }

  /**
   * A message with those before and after it in its thread.
   *
   * @param {NonNullable<Page['include']>[number]} target
   * @param {string | undefined} resourceId
   */
  async #around({ id, withPreviousMessages: before = 0, withNextMessages: after = 0 }, resourceId) {
    const memory = await this.#records.get(this.#id(id));
    if (!memory || (resourceId && memory.user_id !== resourceId)) return [];
    const at = momentOf(memory);
    /** @param {string} type @param {'asc' | 'desc'} order @param {number} limit */
    const ordered = (type, order, limit) => {
      const filters = [...owned(resourceId), during(type, at)];
      return this.#records.ordered({ kind: KIND, scopes: [`session:${memory.session_id}`], filters }, order, limit);
    };
    const same = before + after ? await ordered('eq', 'asc', Infinity) : [memory];
    const place = same.findIndex((row) => row.id === memory.id);
    if (place < 0) return []; // it was deleted meanwhile
    const earlier = (await ordered('lt', 'desc', before - place)).reverse();
    const later = await ordered('gt', 'asc', after - (same.length - place - 1));
    return this.#read([...earlier, ...same.slice(Math.max(0, place - before), place + after + 1), ...later]);
  }

  /** @param {string} id */
  async #get(id) {
    const memory = await this.#records.get(this.#id(id));
    return memory && ((await this.#read([memory]))[0] ?? null);
  }

  /**
   * @param {Memory[]} rows
   * @returns {Promise<Message[]>}
   */
  async #read(rows) {
    const values = await each(rows, async (memory) => {
      const value = await this.#records.valueOf(memory);
      return value && { ...value, createdAt: momentOf(memory) };
    });
    return values.filter((value) => value !== undefined);
  }

  /** @param {string} id */
  #id(id) {
    return this.#records.idOf(KIND, id);
  }

  /** @param {string} id */
  #saidId(id) {
    return this.#records.idOf('said', id);
  }
}

/**
 * @param {Message} message
 * @param {number} place
 */
function checked(message, place) {
  const { threadId, resourceId } = message;
  const at = `messages[${place}]`;
  if (!threadId) throw new InvalidInput(`${at}.threadId: is missing; name the thread`, { param: `${at}.threadId` });
  if (!resourceId) throw new InvalidInput(`${at}.resourceId: is missing; name the resource`, { param: `${at}.resourceId` });
  return { ...message, threadId, resourceId, createdAt: new Date(message.createdAt ?? Date.now()) };
}

/**
 * Whether the metadata of a message has these values.
 *
 * @param {Message} message
 * @param {[string, unknown][]} conditions
 */
function has({ content: { metadata = {} } }, conditions) {
  return conditions.every(([key, value]) => Object.hasOwn(metadata, key) && metadata[key] === value);
}

/**
 * @param {Message['content']} before
 * @param {Change['content']} change
 * @returns {Message['content']}
 */
function merged(before, change) {
  if (!change) return before;
  const metadata = before.metadata && change.metadata ? { metadata: { ...before.metadata, ...change.metadata } } : {};
  return { ...before, ...change, ...metadata };
}

/** @param {Change} change */
function given({ content: _content, ...fields }) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/**
 * @param {string | undefined} resourceId
 * @returns {Filter[]}
 */
function owned(resourceId) {
  return resourceId ? [{ type: 'eq', key: '$user_id', value: resourceId }] : [];
}

/**
 * @param {NonNullable<Page['filter']>['dateRange']} range
 * @returns {Filter[]}
 */
function within({ start, end, startExclusive, endExclusive } = {}) {
  return [
    ...(start ? [during(startExclusive ? 'gt' : 'gte', new Date(start))] : []),
    ...(end ? [during(endExclusive ? 'lt' : 'lte', new Date(end))] : []),
  ];
}
