/**
 * What users and assistants say in threads, observed in sessions of Memoranda.
 *
 * @module
 */
import { Conflict } from '../errors.js';
import { joined } from '../texts.js';
import { isThere } from './requests.js';

/** @typedef {import('@mastra/core/memory').MastraDBMessage} Message */

/**
 * A text of a thread.
 * @typedef {object} Said
 * @property {string} id
 * @property {string} session
 * @property {string} user
 * @property {string} role
 * @property {string} content
 * @property {Date} at
 */

/**
 * The session of a thread: its id. A slash, which routes of sessions cannot have, is written `%2F`, and the first dot of
 * the ids `.` and `..`, `%2E`.
 *
 * @param {string} threadId
 */
export function sessionOf(threadId) {
  return threadId.replace(/[%/]/g, encodeURIComponent).replace(/^\.(?=\.?$)/, '%2E');
}

/**
 * What was said in a message: the text parts of a user's or assistant's message. It is empty if there are none.
 *
 * @param {Message} message
 * @returns {string}
 */
export function textOf({ role, content }) {
  if (role !== 'user' && role !== 'assistant') return '';
  const given = /** @type {unknown} */ (content);
  const texts = typeof given === 'string' ? [given] : content.parts.map((part) => (part.type === 'text' ? part.text : ''));
  return joined(texts);
}

/** The log of what was said. */
export class Log {
  #memoranda;

  /** @param {import('../client.js').Memoranda} memoranda */
  constructor(memoranda) {
    this.#memoranda = memoranda;
  }

  /**
   * Observes texts; one that is there already is changed to what it is now.
   *
   * @param {Said[]} texts
   */
  async observe(texts) {
    /** @type {Map<string, Said[]>} */
    const groups = new Map();
    for (const text of texts) {
      const key = JSON.stringify([text.session, text.user]);
      groups.set(key, [...(groups.get(key) ?? []), text]);
    }
    for (const group of groups.values()) {
      if (await this.#observed(group)) continue;
      for (const text of group) {
        if (!(await this.#observed([text]))) await this.#memoranda.sessions.updateMessage(text.session, text.id, text.content);
      }
    }
  }

  /**
   * Deletes a text; returns false if it was not there.
   *
   * @param {string} session
   * @param {string} id
   */
  async delete(session, id) {
    return isThere(this.#memoranda.sessions.deleteMessage(session, id));
  }

  /**
   * Deletes a session with all that was said in it; returns false if there is none.
   *
   * @param {string} session
   */
  async deleteSession(session) {
    return isThere(this.#memoranda.sessions.delete(session));
  }

  /**
   * Returns false if one of the texts is there with other words.
   *
   * @param {Said[]} texts
   */
  async #observed(texts) {
    const [first] = texts;
    if (!first) return true;
    const messages = texts.map(({ id, role, content, at }) => ({ id, role, content, occurred_at: at.toISOString() }));
    try {
      await this.#memoranda.observe({ session_id: first.session, user_id: first.user, messages });
    } catch (error) {
      if (error instanceof Conflict) return false;
      throw error;
    }
    return true;
  }
}
