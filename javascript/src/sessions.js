import { bodyOf } from './connect.js';
import { SessionsOperations } from './sessions_operations.js';

/** @typedef {import('./connect.js').CallOptions} CallOptions */
/** @typedef {import('./types.js').Schemas} Schemas */

/** Sessions, and what was said in them. */
export class Sessions extends SessionsOperations {
  /**
   * Changes the text of a message.
   *
   * @param {string} id
   * @param {string} messageId
   * @param {string} content
   * @param {CallOptions} [options]
   * @returns {Promise<Schemas['Message']>}
   */
  updateMessage(id, messageId, content, options) {
    const params = { path: { session_id: id, message_id: messageId } };
    return bodyOf(
      this.http.POST('/v1/sessions/{session_id}/messages/{message_id}', { params, body: { content }, ...options }),
    );
  }
}
