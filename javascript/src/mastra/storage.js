import { randomUUID } from 'node:crypto';

import { MastraCompositeStore, MemoryStorage } from '@mastra/core/storage';

import { Conflict, InvalidInput, NotFound } from '../errors.js';
import { Messages } from './messages.js';
import { Records } from './records.js';
import { momentOf } from './rows.js';
import { Log, sessionOf } from './said.js';
import { Threads } from './threads.js';

/** @typedef {import('@mastra/core/memory').MastraDBMessage} Message */
/** @typedef {import('@mastra/core/memory').StorageThreadType} Thread */
/** @typedef {import('@mastra/core/storage').StorageResourceType} Resource */
/** @typedef {import('@mastra/core/storage').StorageListMessagesInput} ListMessages */
/** @typedef {import('@mastra/core/storage').StorageListMessagesByResourceIdInput} ListOfResource */
/** @typedef {import('@mastra/core/storage').StorageListMessagesOutput} MessagePage */
/** @typedef {import('@mastra/core/storage').StorageCloneThreadInput} Copy */

/**
 * @typedef {object} StorageOptions
 * @property {import('../client.js').Memoranda} memoranda
 * @property {string} [name] Keeps several storages on one server apart.
 * @property {boolean} [observe] Whether what users and assistants say is observed as well, so that Memoranda remembers it;
 *   true unless it is given.
 */

const RESOURCE = 'resource';

/**
 * A storage of Mastra on a server, with the domain `memory` alone. Others are taken from another storage:
 * `new MastraCompositeStore({ id, default: other, domains: { memory: new MemorandaMemoryStorage({ memoranda }) } })`.
 */
export class MemorandaStorage extends MastraCompositeStore {
  /** @param {StorageOptions & { id?: string }} options `id` is Mastra's. */
  constructor({ id = 'memoranda', ...options }) {
    super({ id, name: 'MemorandaStorage' });
    this.stores = { memory: new MemorandaMemoryStorage(options) };
  }
}

/**
 * Threads, messages and resources of Mastra's memory on a server. Each is a memory of kind `item` of the user whose id is
 * that of the resource; a thread is in the session of its id, in which what is said is observed, too. The key must be one
 * of an application (`service` or `admin`).
 */
export class MemorandaMemoryStorage extends MemoryStorage {
  /** @type {boolean} */
  supportsPartialThreadUpdate = true;
  #records;
  #threads;
  #messages;

  /** @param {StorageOptions} options */
  constructor({ memoranda, name = 'mastra', observe = true }) {
    super();
    this.#records = new Records(memoranda.memories, name);
    this.#threads = new Threads(this.#records);
    this.#messages = new Messages(this.#records, new Log(memoranda), observe);
  }

  /** Erases everything of this storage for good, and what was observed of its threads. */
  async dangerouslyClearAll() {
    const { threads } = await this.listThreads({ perPage: false });
    for (const { id } of threads) await this.deleteThread({ threadId: id });
    await this.#records.erase();
  }

  // --- threads ---------------------------------------------------------------------------------------------

  /**
   * @param {{ threadId: string, resourceId?: string }} which
   * @returns {Promise<Thread | null>}
   */
  async getThreadById({ threadId, resourceId }) {
    return this.#threads.get(threadId, resourceId);
  }

  /**
   * @param {{ thread: Thread }} given
   * @returns {Promise<Thread>}
   */
  async saveThread({ thread }) {
    await this.#threads.save(thread);
    return thread;
  }

  /**
   * @param {{ id: string, title?: string, metadata?: Record<string, unknown> }} change
   * @returns {Promise<Thread>}
   */
  async updateThread({ id, ...change }) {
    return this.#threads.update(id, change);
  }

  /**
   * Erases a thread with its messages, and what was observed of it.
   *
   * @param {{ threadId: string }} which
   */
  async deleteThread({ threadId }) {
    await this.#messages.unsayThread(threadId);
    await this.#records.erase(`session:${sessionOf(threadId)}`);
  }

  /**
   * @param {import('@mastra/core/storage').StorageListThreadsInput} input
   * @returns {Promise<import('@mastra/core/storage').StorageListThreadsOutput>}
   */
  async listThreads(input) {
    this.validatePaginationInput(input.page ?? 0, input.perPage ?? 100);
    this.validateMetadataKeys(input.filter?.metadata);
    return this.#threads.list(this.parseOrderBy(input.orderBy), input);
  }

  /**
   * Copies a thread. What was said in it before is not observed again.
   *
   * @param {Copy} input
   * @returns {Promise<import('@mastra/core/storage').StorageCopyThreadOutput>}
   */
  async copyThread({ sourceThreadId, newThreadId = randomUUID(), resourceId, title, metadata, options = {} }) {
    const source = await this.#threads.get(sourceThreadId);
    if (!source) throw new NotFound(`Source thread with id ${sourceThreadId} not found`, { code: 'not_found' });
    if (await this.#threads.get(newThreadId)) throw new Conflict(`Thread with id ${newThreadId} already exists`, { code: 'conflict' });
    const all = await this.listMessages({ threadId: sourceThreadId, perPage: false });
    const messages = chosen(all.messages, options);
    const now = new Date();
    const last = messages.at(-1);
    const clone = { sourceThreadId, clonedAt: now, ...(last ? { lastMessageId: last.id } : {}) };
    const thread = {
      id: newThreadId, resourceId: resourceId || source.resourceId,
      title: title || (source.title ? `Clone of ${source.title}` : undefined),
      metadata: { ...metadata, clone }, createdAt: now, updatedAt: now,
    };
    await this.#threads.save(thread);
    const ids = new Map(messages.map(({ id }) => [id, /** @type {string} */ (randomUUID())]));
    const copies = messages.map((message) => ({
      ...message, id: ids.get(message.id) ?? '', threadId: newThreadId, resourceId: resourceId || message.resourceId,
    }));
    await this.#messages.save(copies, { observe: false });
    return { thread, messageIdMap: Object.fromEntries(ids) };
  }

  // --- messages --------------------------------------------------------------------------------------------

  /**
   * @param {ListMessages} input
   * @returns {Promise<MessagePage>}
   */
  async listMessages({ threadId, resourceId, orderBy, ...page }) {
    const threads = Array.isArray(threadId) ? threadId : [threadId];
    if (!threads.length || threads.some((id) => !id.trim())) {
      throw new InvalidInput('threadId: must be a non-empty string or array of non-empty strings', { param: 'threadId' });
    }
    this.validateMetadataKeys(page.filter?.metadata);
    return this.#messages.list({ threads, ...(resourceId ? { resourceId } : {}) }, this.parseOrderBy(orderBy, 'ASC'), page);
  }

  /**
   * @param {ListOfResource} input
   * @returns {Promise<MessagePage>}
   */
  async listMessagesByResourceId({ resourceId, orderBy, ...page }) {
    if (!resourceId) throw new InvalidInput('resourceId: is missing; name the resource', { param: 'resourceId' });
    this.validateMetadataKeys(page.filter?.metadata);
    return this.#messages.list({ resourceId }, this.parseOrderBy(orderBy, 'ASC'), page);
  }

  /**
   * @param {{ messageIds: string[] }} which
   * @returns {Promise<{ messages: Message[] }>}
   */
  async listMessagesById({ messageIds }) {
    return { messages: await this.#messages.byId(messageIds) };
  }

  /**
   * @param {{ messages: Message[] }} given
   * @returns {Promise<{ messages: Message[] }>}
   */
  async saveMessages({ messages }) {
    await this.#messages.save(messages);
    await this.#threads.touch(messages.flatMap(({ threadId }) => threadId ?? []));
    return { messages };
  }

  /**
   * @param {{ messages: import('./messages.js').Change[] }} changes
   * @returns {Promise<Message[]>}
   */
  async updateMessages({ messages: changes }) {
    const { messages, threads } = await this.#messages.update(changes);
    await this.#threads.touch(threads);
    return messages;
  }

  /** @param {string[]} messageIds */
  async deleteMessages(messageIds) {
    await this.#threads.touch(await this.#messages.delete(messageIds));
  }

  // --- resources -------------------------------------------------------------------------------------------

  /**
   * @param {{ resourceId: string }} which
   * @returns {Promise<Resource | null>}
   */
  async getResourceById({ resourceId }) {
    const memory = await this.#records.get(this.#records.idOf(RESOURCE, resourceId));
    const value = memory && (await this.#records.valueOf(memory));
    if (!value) return null;
    return { ...value, createdAt: new Date(value.createdAt), updatedAt: momentOf(memory) };
  }

  /**
   * @param {{ resource: Resource }} given
   * @returns {Promise<Resource>}
   */
  async saveResource({ resource }) {
    const { updatedAt, ...value } = resource;
    const draft = {
      id: this.#records.idOf(RESOURCE, resource.id), kind: RESOURCE, user: resource.id, session: null, at: new Date(updatedAt), value,
    };
    await this.#records.write([draft]);
    return resource;
  }

  /**
   * @param {{ resourceId: string, workingMemory?: string, metadata?: Record<string, unknown> }} change
   * @returns {Promise<Resource>}
   */
  async updateResource({ resourceId, workingMemory, metadata }) {
    return this.#records.inTurn(this.#records.idOf(RESOURCE, resourceId), async () => {
      const now = new Date();
      const before = (await this.getResourceById({ resourceId })) ?? { id: resourceId, createdAt: now, updatedAt: now };
      const changed = workingMemory === undefined ? {} : { workingMemory };
      const resource = { ...before, ...changed, metadata: { ...before.metadata, ...metadata }, updatedAt: now };
      return this.saveResource({ resource });
    });
  }
}

/**
 * @param {Message[]} messages
 * @param {NonNullable<Copy['options']>} options
 */
function chosen(messages, { messageFilter: { startDate, endDate, messageIds } = {}, messageLimit }) {
  const passed = messages.filter(({ id, createdAt: at }) =>
    (!messageIds?.length || messageIds.includes(id)) && (!startDate || at >= startDate) && (!endDate || at <= endDate));
  return messageLimit && messageLimit > 0 ? passed.slice(-messageLimit) : passed;
}
