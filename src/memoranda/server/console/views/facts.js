// Facts: a timeline of what is known of a person or topic, as of any day; where each fact comes from.
import { html, useDebounced, useHotkey, useLoaded, useMedia } from "../ui/core.js";
import { choicesOf, facetsOf } from "../ui/facets.js";
import { Input } from "../ui/form.js";
import { VirtualList } from "../ui/list.js";
import { Empty, Failed, Loading, NoMatch } from "../ui/states.js";
import { setQuery, usePlace } from "../router.js";
import { t } from "../strings.js";
import { Detail } from "./facts/detail.js";
import { Axis, Lane } from "./facts/lane.js";
import { Slider } from "./facts/slider.js";
import { useTimeline } from "./facts/source.js";

/**
 * @typedef {import("./facts/source.js").Chain} Chain
 * @typedef {import("./facts/source.js").Timeline} Timeline
 */

const PAUSE = 150; // milliseconds without a change before the server is asked

export function View() {
  const { query } = usePlace();
  const narrow = useMedia("(max-width: 760px)");
  const who = useDebounced(query.get("who"), PAUSE);
  const at = useDebounced(query.get("at"), PAUSE);
  const openId = query.get("id");
  const topic = useDebounced(query.get("q") ?? "", PAUSE);
  const { chains, timeline, loading, error, more, reload } = useTimeline(who, at, topic);
  const people = useLoaded(timeline === null ? null : "people", (abort) => facetsOf({ kinds: ["fact"] }, abort)).data;
  const close = () => {
    setQuery({ id: null });
    /** @type {HTMLElement | null} */ (document.querySelector(".vrow.current [data-main]"))?.focus();
  };
  useHotkey("Escape", () => openId !== null && close());
  const first = timeline?.since ? Date.parse(timeline.since) : Date.now();
  const shown = chains.find((chain) => chain.facts.some(({ memory }) => memory.id === openId));
  return html`<div class=${`page split facts ${openId === null ? "" : "with-detail"}`}>
    <section class="list-pane" aria-label=${t.facts.list}>
      <header class="page-head"><h1>${t.facts.title}</h1>${topic === "" && html`<${Status} timeline=${timeline} />`}</header>
      <div class="toolbar facts-bar">
        <${Input} label=${t.facts.who} value=${query.get("who") ?? ""} list=${choicesOf(people?.scopes)} placeholder=${t.facts.whoHint} onInput=${/** @param {string} value */ (value) => setQuery({ who: value.trim(), id: null })} />
        <${Input} label=${t.facts.topic} type="search" value=${query.get("q") ?? ""} placeholder=${t.facts.topicHint} onInput=${/** @param {string} q */ (q) => setQuery({ q })} />
        <${Slider} first=${first} at=${query.get("at")} />
      </div>
      ${error ? html`<div class="fill"><${Failed} error=${error} retry=${reload} /></div>`
        : loading && chains.length === 0 ? html`<div class="fill pad"><${Loading} lines=${9} /></div>`
        : chains.length === 0 ? html`<div class="fill">${who || topic
            ? html`<${NoMatch} title=${t.facts.noMatchTitle} body=${t.facts.noMatchBody} label=${t.facts.clear} clear=${() => setQuery({ who: null, q: null })} />`
            : html`<${Empty} title=${t.facts.emptyTitle} body=${t.facts.emptyBody} />`}</div>`
        : html`<${Axis} first=${first} at=${query.get("at")} />
          <${VirtualList} label=${t.facts.list} rows=${chains} height=${narrow ? 96 : 84} current=${shown?.id ?? null} keyOf=${/** @param {Chain} chain */ (chain) => chain.id} onEnd=${more}
            row=${/** @param {Chain} chain */ (chain) => html`<${Lane} chain=${chain} first=${first} at=${query.get("at")} openId=${openId} person=${!who} />`} />`}
    </section>
    ${openId !== null && html`<${Detail} key=${openId} id=${openId} onClose=${close} onChanged=${reload} />`}
  </div>`;
}

/** @param {{ timeline: Timeline | null }} props */
const Status = ({ timeline }) => html`<div class="status" role="status">
  ${timeline && html`<span class="quiet">${t.facts.holding(timeline.holding, timeline.total)}</span>`}
</div>`;
