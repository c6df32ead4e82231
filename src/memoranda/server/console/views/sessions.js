// Sessions: what was said, channel by channel; a session with its messages, summary, facts and weeks.
import { html, useHotkey, useMedia, useState } from "../ui/core.js";
import { momentOf } from "../ui/days.js";
import { Button, IconButton, Input, Select } from "../ui/form.js";
import { VirtualList } from "../ui/list.js";
import { usePages } from "../ui/pages.js";
import { Empty, Failed, Loading, NoMatch } from "../ui/states.js";
import { Time } from "../ui/time.js";
import { addressWith, setQuery, usePlace } from "../router.js";
import { t } from "../strings.js";
import { Detail } from "./sessions/detail.js";
import { Status } from "./sessions/status.js";
import { useTitle } from "./sessions/title.js";

/** @typedef {import("../types.js").Session} Session */

const NAMES = ["channel", "status", "participant", "since", "until"];
const CLEARED = Object.fromEntries(NAMES.map((name) => [name, null]));

export function View() {
  const { query } = usePlace();
  const narrow = useMedia("(max-width: 760px)");
  const openId = query.get("id");
  const wanted = NAMES.some((name) => query.get(name));
  const [filtering, setFiltering] = useState(wanted);
  /** @type {import("../ui/pages.js").Pages<Session>} */
  const pages = usePages("/v1/sessions", {
    channel_id: query.get("channel"), status: query.getAll("status"), participant: query.get("participant"),
    since: momentOf(query.get("since")), until: momentOf(query.get("until")),
  });
  const close = () => {
    setQuery({ id: null, message: null });
    /** @type {HTMLElement | null} */ (document.querySelector(".vrow.current [data-main]"))?.focus();
  };
  useHotkey("Escape", () => openId !== null && close());
  return html`<div class=${`page split sessions ${openId === null ? "" : "with-detail"}`}>
    <section class="list-pane" aria-label=${t.sessions.list}>
      <header class="page-head"><h1>${t.sessions.title}</h1>
        <${IconButton} icon="filter" label=${t.sessions.filters} expanded=${filtering} pressed=${wanted} onClick=${() => setFiltering(!filtering)} />
      </header>
      ${filtering && html`<${Filters} query=${query} rows=${pages.rows} wanted=${wanted} />`}
      ${pages.error ? html`<div class="fill"><${Failed} error=${pages.error} retry=${pages.reload} /></div>`
        : pages.rows.length ? html`<div class="list-head"><span>${t.sessions.newest}</span><span>${t.sessions.began}</span></div>
          <${VirtualList} label=${t.sessions.list} rows=${pages.rows} total=${pages.ended ? pages.rows.length : -1} height=${narrow ? 92 : 64} current=${openId} onEnd=${pages.more}
            keyOf=${/** @param {Session} row */ (row) => row.id} row=${/** @param {Session} row */ (row) => html`<${Row} session=${row} open=${row.id === openId} />`} />`
        : pages.loading ? html`<div class="fill pad"><${Loading} lines=${9} /></div>`
        : html`<div class="fill">${wanted
            ? html`<${NoMatch} title=${t.sessions.noMatchTitle} body=${t.sessions.noMatchBody} label=${t.sessions.clear} clear=${() => setQuery(CLEARED)} />`
            : html`<${Empty} title=${t.sessions.emptyTitle} body=${t.sessions.emptyBody} />`}</div>`}
    </section>
    ${openId !== null && html`<${Detail} key=${openId} id=${openId} message=${query.get("message")} onClose=${close} onChanged=${pages.refresh} />`}
  </div>`;
}

/** @param {{ query: URLSearchParams, rows: Session[], wanted: boolean }} props */
function Filters({ query, rows, wanted }) {
  const statuses = [{ value: "", label: t.sessions.anyStatus }, ...Object.entries(t.sessions.statuses).map(([value, label]) => ({ value, label }))];
  const seen = /** @param {(session: Session) => (string | null)[]} of */ (of) => [...new Set(rows.flatMap(of))].filter((one) => one !== null).sort().slice(0, 100).map((value) => ({ value }));
  return html`<div class="filters" role="group" aria-label=${t.sessions.filters}>
    <${Input} label=${t.sessions.channel} value=${query.get("channel") ?? ""} list=${seen((one) => [one.channel_id])} onInput=${/** @param {string} channel */ (channel) => setQuery({ channel })} />
    <${Select} label=${t.sessions.status} value=${query.get("status") ?? ""} options=${statuses} onChange=${/** @param {string} status */ (status) => setQuery({ status })} />
    <${Input} label=${t.sessions.participant} value=${query.get("participant") ?? ""} list=${seen((one) => one.participants)} onInput=${/** @param {string} participant */ (participant) => setQuery({ participant })} />
    <${Input} label=${t.sessions.since} type="date" value=${query.get("since") ?? ""} onInput=${/** @param {string} since */ (since) => setQuery({ since })} />
    <${Input} label=${t.sessions.until} type="date" value=${query.get("until") ?? ""} onInput=${/** @param {string} until */ (until) => setQuery({ until })} />
    <div class="filters-end"><${Button} small kind="ghost" inactive=${!wanted} onClick=${() => setQuery(CLEARED)}>${t.sessions.clear}<//></div>
  </div>`;
}

/** @param {{ session: Session, open: boolean }} props */
function Row({ session, open }) {
  /** @param {MouseEvent} event */
  const show = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    setQuery({ id: session.id, message: null }, { replace: open });
  };
  const title = useTitle(session);
  const place = session.channel_id ?? (session.named ? session.id : null);
  return html`<div class="memory session-row"><div class="memory-main">
    <div class="memory-line">
      <a class="memory-text" data-main href=${addressWith({ id: session.id, message: null })} title=${title} aria-current=${open ? "true" : null} onClick=${show}>${title}</a>
      <${Time} at=${session.started_at} />
    </div>
    <div class="memory-meta">
      <${Status} status=${session.status} />
      ${place !== null && html`<span class="scope" title=${place}>${place}</span>`}
      <span>${t.sessions.messages(session.message_count)}</span>
      <span class="who-said">${session.participants.join(", ")}</span>
    </div>
  </div></div>`;
}
