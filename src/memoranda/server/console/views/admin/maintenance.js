// Starts jobs that an admin may start.
import { html, useState } from "../../ui/core.js";
import { post } from "../../api.js";
import { Confirm, Dialog } from "../../ui/dialog.js";
import { Button, Input, Select } from "../../ui/form.js";
import { useOperator } from "../../ui/tenant.js";
import { toast } from "../../ui/toast.js";
import { t } from "../../strings.js";

/** @type {Record<string, [string, Record<string, unknown>]>} */
const JOBS = {
  embeddings: ["/v1/backfills", { what: "embeddings" }], everything: ["/v1/backfills", { what: "embeddings", everything: true }],
  summaries: ["/v1/backfills", { what: "summaries" }], query_logs: ["/v1/backfills", { what: "query_logs" }],
  compact: ["/v1/memories/compact", {}],
};

/** @param {{ onStarted: () => void }} props */
export function Maintenance({ onStarted }) {
  const operator = useOperator();
  const [chosen, setChosen] = useState("");
  const names = [...Object.keys(JOBS), ...(operator ? ["move_index"] : [])];
  /** @param {string} path @param {Record<string, unknown>} body */
  const start = async (path, body) => {
    const result = await post(path, body);
    toast(result.ok ? t.admin.startedToast : result.error.message, { bad: !result.ok });
    onStarted();
  };
  const job = JOBS[chosen];
  return html`<${Select} label=${t.admin.maintenance} bare value="" onChange=${setChosen}
      options=${[{ value: "", label: t.admin.maintenance }, ...names.map((value) => ({ value, label: t.admin.work[value] ?? value }))]} />
    ${job && html`<${Confirm} kind="primary" title=${t.admin.work[chosen] ?? chosen} body=${t.admin.workBody[chosen] ?? ""} action=${t.admin.start} onConfirm=${() => void start(...job)} onClose=${() => setChosen("")} />`}
    ${chosen === "move_index" && html`<${MoveIndex} onMove=${/** @param {string} to */ (to) => void start("/v1/memories/move_index", { to })} onClose=${() => setChosen("")} />`}`;
}

/** @param {{ onMove: (to: string) => void, onClose: () => void }} props */
function MoveIndex({ onMove, onClose }) {
  const [to, setTo] = useState("");
  /** @param {Event} [event] */
  const move = (event) => {
    event?.preventDefault();
    if (to.trim() === "") return;
    onClose();
    onMove(to.trim());
  };
  return html`<${Dialog} title=${t.admin.work.move_index ?? ""} onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>${t.cancel}<//>
    <${Button} kind="primary" disabled=${to.trim() === ""} onClick=${move}>${t.admin.start}<//>`}>
    <form class="editor" onSubmit=${move}><p>${t.admin.workBody.move_index}</p><${Input} label=${t.admin.indexUrl} mono value=${to} onInput=${setTo} placeholder=${t.admin.indexUrlHint} autofocus /></form>
  <//>`;
}
