// The latest requests: what was asked, how it ended, and what it took; live, and the slow ones first.
import { html, useEffect, useHotkey, useMedia, useMemo, useState } from "../../ui/core.js";
import { Badge } from "../../ui/badge.js";
import { durationOf } from "../../ui/duration.js";
import { Select, Switch } from "../../ui/form.js";
import { VirtualList } from "../../ui/list.js";
import { usePages, usePoll } from "../../ui/pages.js";
import { Empty, Failed, Loading, NoMatch } from "../../ui/states.js";
import { Time } from "../../ui/time.js";
import { addressWith, setQuery } from "../../router.js";
import { t } from "../../strings.js";
import { merged } from "./entry.js";
import { QuestionDetail } from "./question.js";
import { ResponseDetail } from "./response.js";
import { RequestStatus } from "./status.js";

/**
 * @typedef {import("./entry.js").Entry} Entry
 * @typedef {import("../../types.js").ResponseEntry} ResponseEntry
 * @typedef {import("../../types.js").LogEntry} LogEntry
 */

const MOST = 500; // requests that are sorted by duration
const PAUSE = 2000; // milliseconds between two looks of the live list
/** @type {Record<string, string>} */
const STATUSES = { failed: "failed", incomplete: "incomplete", open: "in_progress" };

/** @param {{ query: URLSearchParams, children: import("../../vendor/htm-preact.js").Child }} props */
export function Requests({ query, children }) {
  const narrow = useMedia("(max-width: 760px)");
  const show = query.get("show") ?? "";
  const slow = query.get("order") === "slow";
  const live = query.get("live") === "1";
  const openId = query.get("id");
  const list = useRequests(show, slow);
  const [trouble, setTrouble] = useState(/** @type {string | null} */ (null));
  usePoll(live, async () => {
    if (!document.hidden) setTrouble(await list.latest());
  }, PAUSE);
  useEffect(() => setTrouble(null), [live, show]);
  const rows = useMemo(() => (slow ? [...list.rows].sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0)) : list.rows), [list.rows, slow]);
  const slowest = rows.reduce((most, one) => Math.max(most, one.seconds ?? 0), 0);
  const close = () => {
    setQuery({ id: null });
    /** @type {HTMLElement | null} */ (document.querySelector(".vrow.current [data-main]"))?.focus();
  };
  useHotkey("Escape", () => openId !== null && close());
  const Detail = query.get("kind") === "asked" ? QuestionDetail : ResponseDetail;
  return html`<div class=${`page split activity ${openId === null ? "" : "with-detail"}`}>
    <section class="list-pane" aria-label=${t.activity.list}>
      <header class="page-head">${children}</header>
      <div class="toolbar request-bar">
        <${Select} label=${t.activity.show} bare value=${show} options=${Object.entries(t.activity.shows).map(([value, label]) => ({ value, label }))}
          onChange=${/** @param {string} value */ (value) => setQuery({ show: value })} />
        <${Select} label=${t.activity.order} bare value=${slow ? "slow" : ""} options=${[{ value: "", label: t.activity.newest }, { value: "slow", label: t.activity.slowest }]}
          onChange=${/** @param {string} value */ (value) => setQuery({ order: value })} />
        <${Switch} label=${t.activity.live} checked=${live} onChange=${/** @param {boolean} on */ (on) => setQuery({ live: on ? "1" : null })} />
        <div class="status" role="status">${trouble !== null ? html`<${Badge} tone="bad" title=${trouble}>${t.activity.stale}<//>`
          : slow && rows.length > 0 && html`<span class="quiet">${t.activity.slowestOf(rows.length, list.ended)}</span>`}</div>
      </div>
      ${list.error ? html`<div class="fill"><${Failed} error=${list.error} retry=${list.reload} /></div>`
        : rows.length ? html`<${VirtualList} label=${t.activity.list} rows=${rows} total=${list.ended ? rows.length : -1} height=${narrow ? 100 : 64} current=${openId} onEnd=${slow ? undefined : list.more}
            keyOf=${/** @param {Entry} row */ (row) => row.id} row=${/** @param {Entry} row */ (row) => html`<${Row} entry=${row} open=${row.id === openId} slowest=${slowest} />`} />`
        : list.loading ? html`<div class="fill pad"><${Loading} lines=${9} /></div>`
        : html`<div class="fill">${show
            ? html`<${NoMatch} title=${t.activity.noMatchTitle} body=${t.activity.noMatchBody} label=${t.activity.clear} clear=${() => setQuery({ show: null })} />`
            : html`<${Empty} title=${t.activity.emptyTitle} body=${t.activity.emptyBody} />`}</div>`}
    </section>
    ${openId !== null && html`<${Detail} key=${openId} id=${openId} onClose=${close} />`}
  </div>`;
}

/**
 * The requests that are chosen, of both kinds, newest first; with `all`, as many as are sorted.
 * @param {string} show @param {boolean} all
 */
function useRequests(show, all) {
  /** @type {import("../../ui/pages.js").Pages<ResponseEntry>} */
  const responses = usePages(show === "asked" ? null : "/v1/responses", { status: STATUSES[show] });
  /** @type {import("../../ui/pages.js").Pages<LogEntry>} */
  const questions = usePages(show === "" || show === "asked" ? "/api/v1/upload-ask/logs" : null);
  const used = [...(show === "asked" ? [] : [responses]), ...(show === "" || show === "asked" ? [questions] : [])];
  const nothing = { rows: [], ended: true };
  const rows = useMemo(() => merged(show === "asked" ? nothing : responses, used.includes(questions) ? questions : nothing), [responses.rows, questions.rows, responses.ended, questions.ended, show]);
  const loading = used.some((one) => one.loading);
  const first = used.some((one) => one.loading && one.rows.length === 0);
  const more = () => used.forEach((one) => one.more());
  useEffect(() => {
    if (all && !loading && rows.length < MOST) more();
  }, [all, loading, rows.length]);
  return {
    rows: first ? [] : rows, loading, more, ended: used.every((one) => one.ended),
    error: used.find((one) => one.error)?.error ?? null,
    reload: () => used.forEach((one) => one.reload()),
    /** What went wrong, or null. */
    latest: async () => (await Promise.all(used.map((one) => one.latest()))).find((error) => error !== null)?.message ?? null,
  };
}

/** @param {{ entry: Entry, open: boolean, slowest: number }} props */
function Row({ entry, open, slowest }) {
  const place = { id: entry.id, kind: entry.asked ? "asked" : null };
  /** @param {MouseEvent} event */
  const show = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    setQuery(place, { replace: open });
  };
  return html`<div class="memory request"><div class="memory-main">
      <a class="memory-text" data-main href=${addressWith(place)} aria-current=${open ? "true" : null} onClick=${show}>${entry.question || t.activity.noQuestion}</a>
      <div class="memory-meta">
        <${RequestStatus} status=${entry.status} />
        ${entry.asked && html`<${Badge}>${t.activity.askedBadge}<//>`}
        <${Time} at=${new Date(entry.at).toISOString()} />
        <span>${t.tokens(entry.tokens)}</span>
        ${entry.cost !== null && html`<span>${t.money(entry.cost.amount, entry.cost.currency)}</span>`}
        ${entry.tools > 0 && html`<span class=${entry.failedTools ? "reason" : ""}>${t.activity.tools(entry.tools, entry.failedTools)}</span>`}
        ${entry.who !== null && html`<span class="scope" title=${entry.who}>${entry.who}</span>`}
        <span class="request-note">${entry.note ?? entry.model}</span>
      </div></div>
    <${Took} entry=${entry} slowest=${slowest} />
  </div>`;
}

/** How long a request took, beside the slowest one. @param {{ entry: Entry, slowest: number }} props */
function Took({ entry, slowest }) {
  if (entry.seconds === null) return html`<div class="took" />`;
  const whole = Math.max(slowest, 1e-9);
  const stages = entry.stages.length ? entry.stages : [{ id: "other", seconds: entry.seconds }];
  return html`<div class="took" title=${entry.stages.map((one) => `${t.activity.stages[one.id]}: ${durationOf(one.seconds)}`).join(", ")}>
    <span class="took-bar" aria-hidden="true">${stages.map((one) => html`<span key=${one.id} class=${`share stage-${one.id}`} style=${{ width: `${(100 * one.seconds) / whole}%` }} />`)}</span>
    <span class="took-number">${durationOf(entry.seconds)}</span>
  </div>`;
}
