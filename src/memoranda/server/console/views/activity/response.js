// One response: its stages, tokens and tool calls, what was asked and what was answered.
import { html, useEffect, useLoaded, useRef } from "../../ui/core.js";
import { get, part } from "../../api.js";
import { Badge, EvidenceBadge } from "../../ui/badge.js";
import { isoOf } from "../../ui/bytes.js";
import { durationOf } from "../../ui/duration.js";
import { Copy, IconButton } from "../../ui/form.js";
import { Icon } from "../../ui/icons.js";
import { Shares } from "../../ui/meter.js";
import { usePoll } from "../../ui/pages.js";
import { Loaded } from "../../ui/states.js";
import { Pairs } from "../../ui/table.js";
import { Time } from "../../ui/time.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";
import { OPEN, stagesOf } from "./entry.js";
import { RequestStatus } from "./status.js";
import { ToolCalls } from "./tool_calls.js";

/**
 * @typedef {import("../../types.js").StoredResponse} StoredResponse
 * @typedef {{ data: { id: string, type: string, role?: string, content?: string | { type: string, text?: string, filename?: string }[] }[] }} InputItems
 */

/** @param {{ id: string, onClose: () => void }} props */
export function ResponseDetail({ id, onClose }) {
  const path = `/v1/responses/${part(id)}`;
  const loaded = useLoaded(id, (abort) => /** @type {Promise<import("../../api.js").Result<StoredResponse>>} */ (get(path, { query: { include: ["file_search_call.results"] }, abort })));
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  usePoll(loaded.data !== null && OPEN.includes(loaded.data.status), async () => loaded.reload());
  return html`<section class="detail" aria-label=${t.activity.response}>
    <header class="detail-head">
      <h2 tabIndex=${-1} ref=${heading}>${t.activity.response}</h2>
      <span class="spring" />
      <a class="button small" href=${address("ask", { response: id })}><${Icon} name="ask" />${t.activity.openAsk}</a>
      <${IconButton} icon="close" label=${t.close} onClick=${onClose} />
    </header>
    <div class="detail-body"><${Loaded} of=${loaded}>${/** @param {StoredResponse} response */ (response) => html`
      <${Head} response=${response} />
      <${Stages} response=${response} />
      <h3>${t.activity.question}</h3><${Question} path=${path} />
      <h3>${t.activity.answer}</h3><${AnswerText} response=${response} />
      <${ToolCalls} output=${/** @type {import("../../types.js").ToolCall[]} */ (/** @type {unknown} */ (response.output))} />
      <${Tokens} response=${response} />
      <${Details} response=${response} />`}<//></div>
  </section>`;
}

/** @param {{ response: StoredResponse }} props */
function Head({ response }) {
  const { evidence, evidence_probability: probability, degraded = [] } = response.extensions;
  return html`<div class="detail-badges wraps"><${RequestStatus} status=${response.status} />
      ${response.background && html`<${Badge}>${t.activity.background}<//>`}
      ${evidence !== undefined && html`<${EvidenceBadge} level=${evidence} probability=${probability ?? 0} />`}</div>
    ${response.error && html`<p class="callout bad" role="alert">${response.error.message}</p>`}
    ${response.incomplete_details && html`<p class="callout">${t.activity.incomplete(response.incomplete_details.reason)}</p>`}
    ${degraded.length > 0 && html`<p class="callout">${t.degraded(degraded)}</p>`}`;
}

/** @param {{ response: StoredResponse }} props */
function Stages({ response }) {
  const timings = response.extensions.timings ?? null;
  if (timings === null) return null;
  const parts = stagesOf(timings).map(({ id, seconds }) => ({ id, label: t.activity.stages[id] ?? id, tone: `stage-${id}`, value: seconds }));
  return html`<h3>${t.activity.took(durationOf(timings.total ?? 0))}</h3><${Shares} parts=${parts} whole=${timings.total ?? 0} format=${durationOf} />`;
}

/** @param {{ path: string }} props */
function Question({ path }) {
  const loaded = useLoaded(path, (abort) => /** @type {Promise<import("../../api.js").Result<InputItems>>} */ (get(`${path}/input_items`, { query: { limit: 100, order: "asc" }, abort })));
  return html`<${Loaded} of=${loaded} lines=${2}>${/** @param {InputItems} page */ ({ data }) => data.length === 0 ? html`<p class="quiet">${t.none}</p>`
    : data.map((item) => html`<div class="said-item" key=${item.id}>${item.role !== "user" && html`<p class="quiet">${item.role ?? item.type}</p>`}<p class="request-text">${textOf(item.content)}</p></div>`)}<//>`;
}

/** @param {InputItems["data"][number]["content"]} content */
function textOf(content) {
  if (content === undefined) return "";
  return typeof content === "string" ? content : content.map((one) => one.text ?? one.filename ?? `[${one.type}]`).join("\n");
}

/** @param {{ response: StoredResponse }} props */
function AnswerText({ response }) {
  const text = response.output.filter((item) => item.type === "message").flatMap((item) => item.content ?? []).map((one) => one.text).join("\n");
  return text ? html`<p class="request-text">${text}</p>` : html`<p class="quiet">${t.activity.noAnswer}</p>`;
}

/** @param {{ response: StoredResponse }} props */
function Tokens({ response: { usage, extensions } }) {
  const cached = usage.input_tokens_details.cached_tokens;
  const reasoning = usage.output_tokens_details.reasoning_tokens;
  return html`<h3>${t.activity.tokensTitle}</h3><${Pairs} pairs=${[
    [t.activity.input, t.number(usage.input_tokens)],
    [t.activity.cached, cached > 0 ? t.number(cached) : null],
    [t.activity.output, t.number(usage.output_tokens)],
    [t.activity.reasoning, reasoning > 0 ? t.number(reasoning) : null],
    [t.activity.cost, extensions.cost ? t.money(extensions.cost.amount, extensions.cost.currency) : null],
  ]} />`;
}

/** @param {{ response: StoredResponse }} props */
function Details({ response }) {
  const retrieved = response.extensions.memory?.retrieved ?? [];
  const previous = response.previous_response_id;
  return html`<h3>${t.activity.details}</h3><${Pairs} pairs=${[
    [t.activity.id, html`<span class="mono id">${response.id}</span> <${Copy} text=${response.id} />`],
    [t.activity.created, html`<${Time} exact at=${isoOf(response.created_at)} />`],
    [t.activity.completed, response.completed_at === null ? null : html`<${Time} exact at=${isoOf(response.completed_at)} />`],
    [t.activity.model, response.model],
    [t.activity.answeredBy, response.extensions.answered_by],
    [t.activity.agent, response.agent_id],
    [t.activity.conversation, response.conversation?.id],
    [t.activity.previous, previous && html`<a class="mono id" href=${address("activity", { id: previous })}>${previous}</a>`],
    [t.activity.memories, retrieved.length ? html`<ul class="linked">${retrieved.map((one) => html`<li key=${one.id}><a class="mono id" href=${address("memories", { id: one.id })}>${one.id}</a> <span class="quiet">${one.score.toFixed(2)}${one.used ? `, ${t.ask.used}` : ""}</span></li>`)}</ul>` : null],
  ]} />`;
}
