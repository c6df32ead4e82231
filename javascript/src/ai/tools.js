import { jsonSchema, tool } from 'ai';

import { NotFound } from '../errors.js';

/** @typedef {import('../types.js').Schemas} Schemas */
/** @typedef {{ query: string, limit?: number }} Question */
/** @typedef {Awaited<ReturnType<import('../memories.js').Memories['search']>>['evidence']} Evidence */
/** @typedef {{ id: string, text: string, kind: Schemas['Memory']['kind'], time: string, source: string | null, score: number }} Recalled */
/** @typedef {{ text: string, filename: string, page: number | null, score: number }} Passage */

/**
 * @typedef {object} MemoryTools
 * @property {import('ai').Tool<Question, { evidence: Evidence, results: Recalled[], degraded: string[] }>} recall
 * @property {import('ai').Tool<{ content: string, tags?: string[] }, { id: string, created: boolean }>} remember
 * @property {import('ai').Tool<{ id: string }, { id: string, forgotten: boolean }>} forget
 * @property {import('ai').Tool<Question, { evidence: Evidence, results: Passage[], degraded: string[] }>} searchDocuments
 */

/**
 * @typedef {object} ToolOptions
 * @property {string} [userId] The user whose memories these are.
 * @property {string} [agentId] The agent that remembers.
 * @property {string[]} [scopes] Where `recall` looks; without it in the user's memories and in those of everybody.
 * @property {string[]} [stores] Vector stores for `searchDocuments`; the server refuses to search none.
 */

const LIMIT = 10;

/**
 * Tools for `generateText`, `streamText` and agents: `recall`, `remember`, `forget` and `searchDocuments`. Take those that
 * the model should have.
 *
 * @param {import('../client.js').Memoranda} memoranda
 * @param {ToolOptions} [options]
 * @returns {MemoryTools}
 */
export function memoryTools(memoranda, { userId, agentId, scopes, stores = [] } = {}) {
  const where = scopes ?? (userId === undefined ? undefined : [`user:${userId}`, 'global']);
  const belongs = { ...(userId === undefined ? {} : { user_id: userId }), ...(agentId === undefined ? {} : { agent_id: agentId }) };

  const recall = tool({
    description:
      'Find what is remembered: what the user said, facts about them, notes. Use it before answering anything that may depend on earlier conversations.',
    inputSchema: /** @type {typeof jsonSchema<{ query: string, limit?: number }>} */ (jsonSchema)({
      type: 'object',
      properties: {
        query: { type: 'string', description: 'A question or key words, in the language of the user.' },
        limit: { type: 'integer', minimum: 1, maximum: 50, description: `How many results; ${LIMIT} without it.` },
      },
      required: ['query'],
      additionalProperties: false,
    }),
    execute: async ({ query, limit = LIMIT }, { abortSignal: signal }) => {
      const found = await memoranda.memories.search({ query, limit, scopes: where ?? null }, { signal });
      const results = found.results.map(({ memory, score }) => ({ ...shown(memory), score }));
      return { evidence: found.evidence, results, degraded: found.degraded };
    },
  });

  const remember = tool({
    description: 'Remember one thing that will matter later, as one sentence that can be understood alone.',
    inputSchema: /** @type {typeof jsonSchema<{ content: string, tags?: string[] }>} */ (jsonSchema)({
      type: 'object',
      properties: {
        content: { type: 'string', description: 'What to remember.' },
        tags: { type: 'array', items: { type: 'string' }, description: 'Words to find it by.' },
      },
      required: ['content'],
      additionalProperties: false,
    }),
    execute: async ({ content, tags = [] }, { abortSignal: signal }) => {
      const added = await memoranda.memories.add({ content, tags, ...belongs }, { signal });
      return { id: added.id, created: added.created };
    },
  });

  const forget = tool({
    description: 'Delete one memory, by the id that `recall` gave, when the user asks for it.',
    inputSchema: /** @type {typeof jsonSchema<{ id: string }>} */ (jsonSchema)({
      type: 'object',
      properties: { id: { type: 'string', description: 'The id of the memory.' } },
      required: ['id'],
      additionalProperties: false,
    }),
    execute: async ({ id }, { abortSignal: signal }) => {
      const memory = await memoranda.memories.get(id, { signal });
      if (userId !== undefined && memory.user_id !== userId) throw new NotFound(`no memory ${id}`, { code: 'not_found' });
      await memoranda.memories.forget({ ids: [id] }, { signal });
      return { id, forgotten: true };
    },
  });

  const searchDocuments = tool({
    description: 'Find passages of the documents that answer a question.',
    inputSchema: /** @type {typeof jsonSchema<{ query: string, limit?: number }>} */ (jsonSchema)({
      type: 'object',
      properties: {
        query: { type: 'string', description: 'A question or key words.' },
        limit: { type: 'integer', minimum: 1, maximum: 50, description: `How many passages; ${LIMIT} without it.` },
      },
      required: ['query'],
      additionalProperties: false,
    }),
    execute: async ({ query, limit = LIMIT }, { abortSignal: signal }) => {
      const found = await memoranda.stores.search(stores, { query, max_num_results: limit }, { signal });
      const results = found.data.map(({ filename, page, content, score }) => ({
        text: content.map((part) => part.text).join(''), filename, page, score,
      }));
      return { evidence: found.evidence, results, degraded: found.degraded };
    },
  });

  return { recall, remember, forget, searchDocuments };
}

/** @param {Schemas['Memory']} memory */
function shown({ id, content, kind, occurred_at: time, source }) {
  return { id, text: content, kind, time, source };
}
