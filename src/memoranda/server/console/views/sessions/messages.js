// What was said in a session, in its order, with who said it.
import { html, useEffect, useRef } from "../../ui/core.js";
import { part } from "../../api.js";
import { Button } from "../../ui/form.js";
import { usePages } from "../../ui/pages.js";
import { Avatar } from "../../ui/speaker.js";
import { Failed, Loading } from "../../ui/states.js";
import { Time } from "../../ui/time.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";

/** @typedef {import("../../types.js").Message} Message */

/** Who said a message, as the server names it. @param {Pick<Message, "speaker" | "user_id" | "role">} message */
export const speakerOf = (message) => message.speaker ?? (message.role === "user" ? message.user_id : null) ?? message.role ?? t.sessions.nobody;

/** @param {{ id: string, marked: string | null, count: number }} props */
export function Messages({ id, marked, count }) {
  /** @type {import("../../ui/pages.js").Pages<Message>} */
  const pages = usePages(`/v1/sessions/${part(id)}/messages`, {});
  const wanted = marked !== null && !pages.ended && !pages.error && !pages.rows.some((row) => row.id === marked);
  useEffect(() => {
    if (wanted && !pages.loading) pages.more();
  }, [pages.rows.length, wanted, pages.loading]);
  return html`<section class="messages" aria-label=${t.sessions.timeline}>
    <h3>${t.sessions.timeline}</h3>
    ${pages.error ? html`<${Failed} error=${pages.error} retry=${pages.reload} />`
      : pages.rows.length === 0 ? (pages.loading ? html`<${Loading} />` : html`<p class="quiet">${t.sessions.noMessages}</p>`)
      : html`<ol>${pages.rows.map((row, i) => html`<${Said} key=${row.id} message=${row} first=${i === 0 || !together(/** @type {Message} */ (pages.rows[i - 1]), row)} marked=${row.id === marked} />`)}</ol>`}
    ${pages.rows.length > 0 && !pages.ended && html`<${Button} onClick=${pages.more}>${t.sessions.more} (${t.number(count - pages.rows.length)})<//>`}
  </section>`;
}

/** Whether two messages are shown under one name. @param {Message} before @param {Message} after */
const together = (before, after) => speakerOf(before) === speakerOf(after) && Date.parse(after.occurred_at) - Date.parse(before.occurred_at) < 5 * 60_000;

/** @param {{ message: Message, first: boolean, marked: boolean }} props */
function Said({ message, first, marked }) {
  const item = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (marked) item.current?.scrollIntoView({ block: "center" });
  }, [marked]);
  const name = speakerOf(message);
  return html`<li ref=${item} class=${`said ${first ? "first" : ""} ${marked ? "marked" : ""}`} aria-current=${marked ? "true" : null}>
    ${first ? html`<${Avatar} name=${name} />` : html`<span />`}
    <div class="said-body">
      ${first && html`<p class="said-head"><strong>${name}</strong>${message.role !== "user" && message.role !== name && html`<span class="quiet">${message.role}</span>`}<span class="quiet"><${Time} exact at=${message.occurred_at} /></span>
        ${message.indexed && html`<a href=${address("memories", { id: message.id })} aria-label=${`${t.sessions.openMemory}: ${message.content.slice(0, 60)}`}>${t.sessions.openMemory}</a>`}</p>`}
      <p class="said-text">${message.content}</p>
    </div>
  </li>`;
}
