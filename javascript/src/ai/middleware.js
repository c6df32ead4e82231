import { InvalidInput } from '../errors.js';
import { joined, queryOf } from '../texts.js';
import { idOf, saidIn, textOf, withSystem } from './prompt.js';

/** @typedef {import('../types.js').Schemas} Schemas */
/** @typedef {import('./prompt.js').Said} Said */
/** @typedef {import('ai').LanguageModelMiddleware} Middleware */
/** @typedef {Parameters<NonNullable<Middleware['transformParams']>>[0]['params']} Params */

/**
 * Whose conversation this is, and where it is kept. Each may also be named in one call, in `providerOptions.memoranda`.
 * @typedef {object} Place
 * @property {string} [sessionId] The conversation. A message that is sent again in it is kept once.
 * @property {string} [channelId] A channel, whose messages become sessions by themselves.
 * @property {string} [userId] The user who asks.
 * @property {string} [agentId] The agent that answers.
 * @property {boolean} [observe] Whether what is said is kept; true unless it is named.
 */

/**
 * @typedef {object} MemorySettings
 * @property {Omit<Partial<Schemas['ContextBody']>, 'query' | 'recent'>} [context] Fields of a context, such as `budget`, `scopes`, `stores`.
 * @property {boolean} [extraction] Whether facts are taken out of what is said; the server's configuration decides without it.
 * @property {(error: unknown, during: 'context' | 'observe') => void} [onError] Is told when memory fails, and the model answers
 *   without it. Without `onError` the call fails.
 */

/** @typedef {Place & MemorySettings} MemoryOptions */

/**
 * What a call was given.
 * @typedef {object} Call
 * @property {Place} place
 * @property {Said[]} conversation What was said before the answer.
 * @property {boolean} asked Whether the user said the last of it.
 * @property {Schemas['Context'] | null} context
 */

const RECENT = 20; // messages of the conversation that the server is told, so that it does not repeat them
const NAMES = ['sessionId', 'channelId', 'userId', 'agentId', 'observe'];

/**
 * A middleware for `wrapLanguageModel`: what is remembered about the user's last message goes into a system message, and
 * the message and the answer are kept when the answer is complete, streamed or not. `providerMetadata.memoranda` of the
 * result has `evidence`, `evidenceProbability`, `memories` (the ids in the context) and `degraded`.
 *
 * @param {import('../client.js').Memoranda} memoranda
 * @param {MemoryOptions} [options]
 * @returns {Middleware & { specificationVersion: 'v3' }}
 */
export function memoryMiddleware(memoranda, { context: fields = {}, extraction, onError, ...common } = {}) {
  /** @type {WeakMap<object, Call>} */
  const calls = new WeakMap();

  /**
   * @template T
   * @param {'context' | 'observe'} during
   * @param {() => Promise<T>} work
   * @param {AbortSignal} [signal]
   * @returns {Promise<T | null>}
   */
  async function attempted(during, work, signal) {
    try {
      return await work();
    } catch (error) {
      if (!onError || signal?.aborted) throw error;
      onError(error, during);
      return null;
    }
  }

  /**
   * @param {Call} call
   * @param {string} answer
   * @returns {Promise<void>}
   */
  async function observed({ place, conversation, asked }, answer) {
    const all = answer ? [...conversation, { role: /** @type {const} */ ('assistant'), content: answer }] : conversation;
    const count = (asked ? 1 : 0) + (answer ? 1 : 0);
    if (place.observe === false || !count) return;
    const messages = all.slice(-count).map((message, at) => {
      const upTo = all.slice(0, all.length - count + at + 1);
      return place.sessionId ? { ...message, id: idOf(place.sessionId, upTo) } : message;
    });
    await attempted('observe', () =>
      memoranda.observe({ messages, extraction: extraction ?? null, ...placed(place) }),
    );
  }

  return {
    specificationVersion: 'v3',

    async transformParams({ params }) {
      const { memoranda: own, ...providerOptions } = params.providerOptions ?? {};
      const place = placeOf(common, own);
      const conversation = saidIn(params.prompt);
      const last = params.prompt.at(-1);
      const asked = last?.role === 'user' && textOf(last) !== '';
      const question = conversation.findLastIndex((message) => message.role === 'user');
      const signal = params.abortSignal;
      const found = question < 0 ? null : await attempted('context', () => {
        const before = conversation.slice(0, question).slice(-RECENT);
        const query = queryOf(conversation[question]?.content ?? '');
        const budgets = { ...fields.budgets, recent: 0 };
        const where = fields.scopes || fields.scope || fields.hierarchy ? {} : placed(place);
        return memoranda.context({ ...where, ...fields, budgets, query, recent: before }, { signal });
      }, signal);
      const text = found ? told(found) : '';
      const changed = { ...params, providerOptions, prompt: text ? withSystem(params.prompt, text) : params.prompt };
      calls.set(changed, { place, conversation, asked, context: found });
      return changed;
    },

    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      const call = /** @type {Call} */ (calls.get(params));
      const texts = result.content.map((part) => (part.type === 'text' ? part.text : ''));
      if (result.finishReason.unified !== 'error') await observed(call, joined(texts));
      return { ...result, providerMetadata: { ...result.providerMetadata, ...metadata(call) } };
    },

    async wrapStream({ doStream, params }) {
      const { stream, ...rest } = await doStream();
      const call = /** @type {Call} */ (calls.get(params));
      /** @type {Map<string, string>} */
      const texts = new Map(); // of blocks, which may come at the same time
      let failed = false;
      /** @type {TransformStream<any, any>} */
      const listening = new TransformStream({
        async transform(/** @type {any} */ part, controller) {
          if (part.type === 'text-start') texts.set(part.id, '');
          if (part.type === 'text-delta') texts.set(part.id, (texts.get(part.id) ?? '') + part.delta);
          if (part.type === 'error') failed = true;
          if (part.type === 'finish') {
            if (!failed && part.finishReason.unified !== 'error') await observed(call, joined([...texts.values()]));
            part = { ...part, providerMetadata: { ...part.providerMetadata, ...metadata(call) } };
          }
          controller.enqueue(part);
        },
      });
      return { ...rest, stream: stream.pipeThrough(listening) };
    },
  };
}

/**
 * @param {Place} common
 * @param {Record<string, unknown> | undefined} own
 * @returns {Place}
 */
function placeOf(common, own = {}) {
  const unknown = Object.keys(own).find((name) => !NAMES.includes(name));
  if (unknown !== undefined) {
    const param = `providerOptions.memoranda.${unknown}`;
    throw new InvalidInput(`${param}: is no option; use ${NAMES.join(', ')}`, { param });
  }
  const place = { ...common, ...own };
  if (place.observe !== false && !place.sessionId && !place.channelId) {
    throw new InvalidInput('sessionId: is missing; name sessionId or channelId, or set observe to false', { param: 'sessionId' });
  }
  return place;
}

/** @param {Place} place */
function placed({ sessionId, channelId, userId, agentId }) {
  return {
    ...(sessionId === undefined ? {} : { session_id: sessionId }),
    ...(channelId === undefined ? {} : { channel_id: channelId }),
    ...(userId === undefined ? {} : { user_id: userId }),
    ...(agentId === undefined ? {} : { agent_id: agentId }),
  };
}

/** @param {Schemas['Context']} context */
function told({ parts }) {
  const names = /** @type {const} */ (['documents', 'memories', 'sessions', 'summary']);
  return names.flatMap((name) => parts[name]?.text ?? []).join('\n\n');
}

/**
 * @param {Call} call
 * @returns {Record<string, { [name: string]: string | number | string[] }>}
 */
function metadata({ context }) {
  if (!context) return {};
  const { evidence, evidence_probability: evidenceProbability, degraded, pieces } = context;
  const memories = pieces.filter((piece) => piece.part === 'memories').flatMap((piece) => piece.citation?.ids ?? []);
  return { memoranda: { evidence, evidenceProbability, memories, degraded } };
}
