// What a session is called: the topics of its summary, else its first sentence, else how the session begins.
import { useLoaded } from "../../ui/core.js";
import { get, part } from "../../api.js";
import { speakerOf } from "./messages.js";

/**
 * @typedef {import("../../types.js").Session} Session
 * @typedef {import("../../types.js").Message} Message
 * @typedef {import("../../types.js").Page<Message>} Messages
 */

const TOPICS = 4;
const MOST = 200; // characters of a title
const SENTENCE = /^.*?[.!?…。！？](?=\s|$)/su;

/** The title out of the summary; null without one. @param {Session} session */
function summarized({ topics, summary }) {
  if (topics.length > 0) {
    const text = topics.slice(0, TOPICS).join(", ");
    return text.charAt(0).toUpperCase() + text.slice(1);
  }
  return summary === null ? null : (SENTENCE.exec(summary)?.[0] ?? summary).slice(0, MOST);
}

/**
 * The title of a session. Of one without a summary the first message is loaded, and until then it is who speaks.
 * @param {Session | null} session null while it is loaded
 */
export function useTitle(session) {
  const made = session && summarized(session);
  const key = session && made === null && session.message_count > 0 ? session.id : null;
  const { data } = useLoaded(key, (abort) => /** @type {Promise<import("../../api.js").Result<Messages>>} */ (get(`/v1/sessions/${part(key ?? "")}/messages`, { query: { limit: 1 }, abort })));
  const first = data?.data[0];
  return made ?? (first ? `${speakerOf(first)}: ${first.content.slice(0, MOST)}` : session?.participants.join(", ") ?? "");
}
