// One session: its messages, and beside them what was made of it.
import { html, useEffect, useLoaded, useRef, useState } from "../../ui/core.js";
import { get, part, post, remove } from "../../api.js";
import { Confirm } from "../../ui/dialog.js";
import { Button, IconButton } from "../../ui/form.js";
import { Loaded } from "../../ui/states.js";
import { Time } from "../../ui/time.js";
import { toast } from "../../ui/toast.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";
import { Facts, Rollups, Summary } from "./beside.js";
import { Messages } from "./messages.js";
import { Status } from "./status.js";
import { useTitle } from "./title.js";

/** @typedef {import("../../types.js").Session} Session */

/** @param {{ id: string, message: string | null, onClose: () => void, onChanged: () => void }} props */
export function Detail({ id, message, onClose, onChanged }) {
  const loaded = useLoaded(id, (abort) => /** @type {Promise<import("../../api.js").Result<Session>>} */ (get(`/v1/sessions/${part(id)}`, { abort })));
  const title = useTitle(loaded.data) || t.sessions.detail;
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  /** @param {Session} session */
  const changed = (session) => {
    loaded.set(session);
    onChanged();
  };
  return html`<section class="detail" aria-label=${t.sessions.detail}>
    <header class="detail-head">
      <h2 tabIndex=${-1} ref=${heading} title=${title}>${title}</h2>
      <${IconButton} icon="close" label=${t.close} onClick=${onClose} />
    </header>
    <div class="detail-body session-body">
      <${Loaded} of=${loaded}>${/** @param {Session} session */ (session) => html`
        <${Head} session=${session} onChanged=${changed} onDeleted=${() => { onClose(); onChanged(); }} />
        <div class="session-columns">
          <${Messages} id=${id} marked=${message} count=${session.message_count} />
          <div class="beside">
            <${Summary} session=${session} /><${Facts} session=${session} />${session.channel_id !== null && html`<${Rollups} channel=${session.channel_id} />`}
          </div>
        </div>`}<//>
    </div>
  </section>`;
}

/** @param {{ session: Session, onChanged: (session: Session) => void, onDeleted: () => void }} props */
function Head({ session, onChanged, onDeleted }) {
  const [asking, setAsking] = useState(/** @type {"summarize" | "close" | "delete" | null} */ (null));
  const [busy, setBusy] = useState(false);
  const path = `/v1/sessions/${part(session.id)}`;
  /** @param {"summarize" | "close"} verb @param {string} says */
  const change = async (verb, says) => {
    setBusy(true);
    /** @type {import("../../api.js").Result<Session>} */
    const result = await post(`${path}/${verb}`, {});
    setBusy(false);
    if (!result.ok) toast(result.error.message, { bad: true });
    else {
      toast(says);
      onChanged(result.data);
    }
  };
  const gone = async () => {
    const result = await remove(path);
    if (!result.ok) toast(result.error.message, { bad: true });
    else {
      toast(t.sessions.deletedToast);
      onDeleted();
    }
  };
  const s = t.sessions;
  /** @type {Record<string, [string, string, string, "danger" | "primary", () => void]>} */
  const questions = {
    summarize: [s.summarizeTitle, s.summarizeBody, s.summarize, "primary", () => void change("summarize", s.summarizedToast)],
    close: [s.closeTitle, s.closeBody, s.close, "primary", () => void change("close", s.closedToast)],
    delete: [s.deleteTitle, s.deleteBody(session.message_count), s.delete, "danger", () => void gone()],
  };
  const question = asking && questions[asking];
  return html`
    <div class="session-facts">
      <${Status} status=${session.status} />
      <span><${Time} exact at=${session.started_at} /></span><span class="quiet">${s.messages(session.message_count)}</span>
      ${session.channel_id !== null && html`<a class="mono id" href=${address("memories", { scope: `channel:${session.channel_id}` })}>channel:${session.channel_id}</a>`}
      ${session.user_id !== null && html`<a class="mono id" href=${address("facts", { who: `user:${session.user_id}` })}>user:${session.user_id}</a>`}
      <span class="mono id quiet">${session.id}</span>
    </div>
    <div class="actions">
      <${Button} small icon="context" busy=${busy} onClick=${() => setAsking("summarize")}>${session.summary === null ? s.summarize : s.again}<//>
      ${session.status === "open" && html`<${Button} small icon="check" busy=${busy} onClick=${() => setAsking("close")}>${s.close}<//>`}
      <span class="spring" />
      <${Button} small kind="danger" icon="delete" onClick=${() => setAsking("delete")}>${s.delete}<//>
    </div>
    ${session.failure !== null && html`<p class="callout bad" role="alert">${s.failure(session.attempts, session.failure)}</p>`}
    ${session.facts_failure !== null && html`<p class="callout">${s.factsFailure(session.facts_failure)}</p>`}
    ${question && html`<${Confirm} title=${question[0]} body=${question[1]} action=${question[2]} kind=${question[3]} onConfirm=${question[4]} onClose=${() => setAsking(null)} />`}`;
}
