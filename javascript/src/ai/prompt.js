/**
 * What a prompt of the AI SDK says, as text. Prompts are those of language models of the specification v3 and v4.
 *
 * @module
 */
import { createHash } from 'node:crypto';

import { joined } from '../texts.js';

/** @typedef {{ role: string, content: string | readonly { type: string, text?: unknown }[] }} PromptMessage */
/** @typedef {{ role: 'user' | 'assistant', content: string }} Said */

/**
 * The text of a message, as it can be kept; pictures, files, reasoning and calls of tools are none.
 *
 * @param {PromptMessage} message
 * @returns {string}
 */
export function textOf({ content }) {
  if (typeof content === 'string') return joined([content]);
  return joined(content.map((part) => (part.type === 'text' && typeof part.text === 'string' ? part.text : '')));
}

/**
 * What users and the assistant said, the oldest first.
 *
 * @param {readonly PromptMessage[]} prompt
 * @returns {Said[]}
 */
export function saidIn(prompt) {
  return prompt.flatMap((message) => {
    const { role } = message;
    const content = textOf(message);
    return (role === 'user' || role === 'assistant') && content ? [{ role, content }] : [];
  });
}

/**
 * The prompt with a system message behind those that it begins with.
 *
 * @template {PromptMessage} Message
 * @param {readonly Message[]} prompt
 * @param {string} text
 * @returns {Message[]}
 */
export function withSystem(prompt, text) {
  const first = prompt.findIndex((message) => message.role !== 'system');
  const place = first < 0 ? prompt.length : first;
  const message = /** @type {Message} */ (/** @type {unknown} */ ({ role: 'system', content: text }));
  return [...prompt.slice(0, place), message, ...prompt.slice(place)];
}

/**
 * The id of the last message of a conversation in a session: the same conversation, sent again, has the same.
 *
 * @param {string} session
 * @param {readonly Said[]} conversation
 * @returns {string}
 */
export function idOf(session, conversation) {
  const parts = conversation.map(({ role, content }) => [role, content]);
  return `ai_${createHash('sha256').update(JSON.stringify([session, parts])).digest('hex').slice(0, 32)}`;
}
