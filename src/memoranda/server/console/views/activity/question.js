// One logged question to uploaded documents: its answer, tokens and sources.
import { html, useEffect, useLoaded, useRef } from "../../ui/core.js";
import { get, part } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { durationOf } from "../../ui/duration.js";
import { Copy, IconButton } from "../../ui/form.js";
import { Icon } from "../../ui/icons.js";
import { Shares } from "../../ui/meter.js";
import { Loaded } from "../../ui/states.js";
import { Pairs } from "../../ui/table.js";
import { Time } from "../../ui/time.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";
import { RequestStatus } from "./status.js";

/** @typedef {import("../../types.js").LogEntry} LogEntry */

/** @param {{ id: string, onClose: () => void }} props */
export function QuestionDetail({ id, onClose }) {
  const loaded = useLoaded(id, (abort) => /** @type {Promise<import("../../api.js").Result<LogEntry>>} */ (get(`/api/v1/upload-ask/logs/${part(id)}`, { abort })));
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return html`<section class="detail" aria-label=${t.activity.asked}>
    <header class="detail-head">
      <h2 tabIndex=${-1} ref=${heading}>${t.activity.asked}</h2>
      <span class="spring" />
      ${loaded.data && html`<a class="button small" href=${address("ask", { mode: "uploads", session: loaded.data.sessionId })}><${Icon} name="ask" />${t.activity.openAsk}</a>`}
      <${IconButton} icon="close" label=${t.close} onClick=${onClose} />
    </header>
    <div class="detail-body"><${Loaded} of=${loaded}>${/** @param {LogEntry} entry */ (entry) => html`<${Content} entry=${entry} />`}<//></div>
  </section>`;
}

/** @param {{ entry: LogEntry }} props */
function Content({ entry }) {
  const tokens = /** @type {const} */ ([
    ["question", entry.questionTokens], ["documents", entry.documentTokens], ["memories", entry.memoryTokens], ["recent", entry.historyTokens], ["answer", entry.answerTokens],
  ]).map(([id, value]) => ({ id, label: t.activity.tokenParts[id] ?? id, tone: id === "answer" ? "summary" : id, value }));
  const whole = tokens.reduce((sum, one) => sum + one.value, 0);
  return html`
    <div class="detail-badges wraps"><${RequestStatus} status=${entry.status} /><${Badge}>${t.activity.took(durationOf(entry.latencyMs / 1000))}<//></div>
    ${entry.erasedAt !== null && html`<p class="callout">${t.activity.erasedAt} <${Time} exact at=${entry.erasedAt} /></p>`}
    <h3>${t.activity.question}</h3><p class="request-text">${entry.question}</p>
    <h3>${t.activity.answer}</h3><p class="request-text">${entry.answer}</p>
    <h3>${t.tokens(whole)}</h3><${Shares} parts=${tokens} whole=${whole} format=${t.number} />
    ${entry.sources.length > 0 && html`<h3>${t.activity.sources}</h3><ul class="linked">${entry.sources.map((one, i) => html`<li key=${i}>${one.filename} <span class="quiet">${t.knowledge.chunk(one.chunkIndex)}${one.cited ? `, ${t.ask.cited}` : ""}</span></li>`)}</ul>`}
    ${entry.memories.length > 0 && html`<h3>${t.activity.memories}</h3><ul class="linked">${entry.memories.map((one) => html`<li key=${one.id}><a class="mono id" href=${address("memories", { id: one.id })}>${one.id}</a></li>`)}</ul>`}
    <h3>${t.activity.details}</h3><${Pairs} pairs=${[
      [t.activity.id, html`<span class="mono id">${entry.id}</span> <${Copy} text=${entry.id} />`],
      [t.activity.created, html`<${Time} exact at=${entry.createdAt} />`],
      [t.activity.model, entry.model],
      [t.activity.user, entry.userId],
    ]} />`;
}
