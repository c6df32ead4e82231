// The calls of tools in an output: what each was given, and what came of it.
import { html } from "../../ui/core.js";
import { Badge } from "../../ui/badge.js";
import { t } from "../../strings.js";
import { TONES } from "./entry.js";

/** @typedef {import("../../types.js").ToolCall} ToolCall */

const UNCALLED = ["message", "reasoning", "compaction", "mcp_list_tools"];

/** @param {{ output: ToolCall[] }} props */
export function ToolCalls({ output }) {
  const calls = output.filter((item) => !UNCALLED.includes(item.type));
  if (calls.length === 0) return null;
  return html`<h3>${t.activity.toolCalls}</h3><ol class="calls">${calls.map((call) => html`<li class="piece" key=${call.id}>
    <header><strong class="id">${nameOf(call)}</strong>${call.server_label && html`<span class="quiet">${call.server_label}</span>`}
      <span class="spring" />${call.status && html`<${Badge} tone=${TONES[call.status] ?? ""}>${t.activity.statuses[call.status] ?? call.status}<//>`}</header>
    ${given(call) && html`<pre class="code" tabIndex=${0} aria-label=${t.activity.given(nameOf(call))}>${given(call)}</pre>`}
    ${call.results && html`<p class="quiet">${t.activity.results(call.results.length)}</p>`}
    ${call.output && html`<pre class="code" tabIndex=${0} aria-label=${t.activity.result(nameOf(call))}>${call.output}</pre>`}
    ${call.error ? html`<p class="wrong">${wrong(call.error)}</p>` : null}
  </li>`)}</ol>`;
}

/** @param {ToolCall} call */
const nameOf = (call) => call.name ?? call.type.replace(/_call$/, "");

/** @param {ToolCall} call */
const given = (call) => call.arguments ?? call.queries?.join("\n") ?? "";

/** @param {unknown} error */
function wrong(error) {
  if (typeof error === "string") return error;
  const { message } = /** @type {{ message?: string }} */ (error);
  return message ?? JSON.stringify(error);
}
