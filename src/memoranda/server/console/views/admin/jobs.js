// The latest jobs of the key's tenant with their progress; waiting and running ones can be cancelled, failed ones retried, and maintenance started.
import { html, useLoaded, useMedia, useState } from "../../ui/core.js";
import { get, part, post } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { Confirm } from "../../ui/dialog.js";
import { Button, Select } from "../../ui/form.js";
import { VirtualList } from "../../ui/list.js";
import { usePoll } from "../../ui/pages.js";
import { Empty, Failed, Loading } from "../../ui/states.js";
import { Time } from "../../ui/time.js";
import { toast } from "../../ui/toast.js";
import { setQuery } from "../../router.js";
import { t } from "../../strings.js";
import { Maintenance } from "./maintenance.js";

/** @typedef {import("../../types.js").Job} Job */

/** @type {Record<string, "good" | "bad" | "accent" | "">} */
const TONES = { queued: "", running: "accent", completed: "good", failed: "bad", cancelled: "" };
const OPEN = ["queued", "running"];
/** Kinds that are asked for again: a response by its caller, a move of the index by its address. */
const ASKED_AGAIN = ["responses.create", "index.move"];

/** @param {{ query: URLSearchParams, children: import("../../vendor/htm-preact.js").Child }} props */
export function Jobs({ query, children }) {
  const narrow = useMedia("(max-width: 760px)");
  const state = query.get("state") ?? "";
  const loaded = useLoaded("jobs", (abort) => /** @type {Promise<import("../../api.js").Result<{ data: Job[] }>>} */ (get("/v1/jobs", { query: { limit: 1000 }, abort })));
  const [cancelling, setCancelling] = useState(/** @type {Job | null} */ (null));
  const all = loaded.data?.data ?? [];
  const rows = all.filter((job) => state === "" || job.state === state);
  usePoll(all.some((job) => OPEN.includes(job.state)), async () => loaded.reload());
  /** @param {Job} job @param {"cancel" | "retry"} change @param {string} done */
  const change = async (job, change, done) => {
    const result = await post(`/v1/jobs/${part(job.id)}/${change}`, {});
    toast(result.ok ? done : result.error.message, { bad: !result.ok });
    loaded.reload();
  };
  return html`<section class="page list-pane" aria-label=${t.admin.jobs}>
    <header class="page-head">${children}</header>
    <div class="toolbar request-bar">
      <${Select} label=${t.admin.state} bare value=${state} options=${[{ value: "", label: t.admin.anyState }, ...Object.entries(t.admin.states).map(([value, label]) => ({ value, label }))]}
        onChange=${/** @param {string} value */ (value) => setQuery({ state: value })} />
      <${Maintenance} onStarted=${loaded.reload} />
    </div>
    ${loaded.error ? html`<div class="fill"><${Failed} error=${loaded.error} retry=${loaded.reload} /></div>`
      : loaded.data === null ? html`<div class="fill pad"><${Loading} lines=${8} /></div>`
      : rows.length === 0 ? html`<div class="fill"><${Empty} title=${state ? t.admin.noJobOfState : t.admin.noJobsTitle} body=${state ? undefined : t.admin.noJobsBody} /></div>`
      : html`<${VirtualList} label=${t.admin.jobs} rows=${rows} height=${narrow ? 76 : 64} keyOf=${/** @param {Job} job */ (job) => job.id} row=${/** @param {Job} job */ (job) => html`<${Row} job=${job} onCancel=${() => setCancelling(job)} onRetry=${() => void change(job, "retry", t.admin.retriedToast)} />`} />`}
    ${cancelling && html`<${Confirm} title=${t.admin.cancelTitle} body=${t.admin.cancelBody(kindOf(cancelling))} action=${t.admin.cancelJob} onConfirm=${() => void change(cancelling, "cancel", t.admin.cancelledToast)} onClose=${() => setCancelling(null)} />`}
  </section>`;
}

/** @param {Job} job */
const kindOf = (job) => t.admin.jobKinds[job.kind] ?? job.kind;

/** @param {{ job: Job, onCancel: () => void, onRetry: () => void }} props */
function Row({ job, onCancel, onRetry }) {
  const share = job.total ? Math.min(1, job.done / job.total) : job.state === "completed" ? 1 : 0;
  return html`<div class="memory file job"><div class="memory-main">
      <span class="job-kind" data-main tabIndex=${0} title=${job.id}>${kindOf(job)}</span>
      <div class="memory-meta"><${Badge} tone=${TONES[job.state] ?? ""}>${t.admin.states[job.state] ?? job.state}<//>
        <${Time} at=${job.updated_at} />
        ${(job.total !== null || job.done > 0) && html`<span>${t.admin.progress(job.done, job.total)}</span>`}
        ${job.attempts > 1 && html`<span>${t.admin.attempts(job.attempts)}</span>`}
        ${job.error && html`<span class="reason" title=${job.error}>${job.error}</span>`}</div>
      ${job.state === "running" && html`<span class="bar job-bar" aria-hidden="true"><span class="fill total" style=${{ width: `${share * 100}%` }} /></span>`}
    </div>
    <div class="file-actions">${OPEN.includes(job.state) && html`<${Button} small onClick=${onCancel}>${t.admin.cancelJob}<//>`}
      ${job.state === "failed" && !ASKED_AGAIN.includes(job.kind) && html`<${Button} small onClick=${onRetry}>${t.admin.retryJob}<//>`}</div>
  </div>`;
}
