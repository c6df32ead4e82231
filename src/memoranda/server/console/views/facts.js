// Facts: a timeline of what is known of a person or topic, as of any day; where each fact comes from.
import { html, useDebounced, useEffect, useHotkey, useLoaded, useMedia, useMemo, useState } from "../ui/core.js";
import { Button, Input } from "../ui/form.js";
import { VirtualList } from "../ui/list.js";
import { Empty, Failed, Loading } from "../ui/states.js";
import { setQuery, usePlace } from "../router.js";
import { t } from "../strings.js";
import { Detail } from "./facts/detail.js";
import { Axis, Lane } from "./facts/lane.js";
import { Slider } from "./facts/slider.js";
import { about, factsOf, holdingAt, MOST } from "./facts/source.js";

/** @typedef {import("./facts/source.js").Chain} Chain */

const PAUSE = 150; // milliseconds without a change before the server is asked

export function View() {
  const { query } = usePlace();
  const narrow = useMedia("(max-width: 760px)");
  const who = useDebounced(query.get("who"), PAUSE);
  const at = useDebounced(query.get("at"), PAUSE);
  const openId = query.get("id");
  const topic = query.get("q") ?? "";
  const loaded = useLoaded(`facts ${who ?? ""}`, (abort, part) => factsOf(who, abort, part));
  const holding = useLoaded(`${who ?? ""} ${at ?? ""}`, (abort) => holdingAt(who, at && `${at}T23:59:59.999Z`, abort));
  const [people, setPeople] = useState(/** @type {string[]} */ ([]));
  useEffect(() => {
    const found = loaded.data?.people ?? [];
    setPeople((before) => [...new Set([...before, ...found])]);
  }, [loaded.data]);
  const chains = useMemo(() => about(loaded.data?.chains ?? [], topic), [loaded.data, topic]);
  const close = () => {
    setQuery({ id: null });
    /** @type {HTMLElement | null} */ (document.querySelector(".vrow.current [data-main]"))?.focus();
  };
  useHotkey("Escape", () => openId !== null && close());
  const reload = () => {
    loaded.reload();
    holding.reload();
  };
  const first = loaded.data?.first ?? Date.now();
  const error = loaded.error ?? holding.error;
  const shown = chains.find((chain) => chain.facts.some(({ memory }) => memory.id === openId));
  return html`<div class=${`page split facts ${openId === null ? "" : "with-detail"}`}>
    <section class="list-pane" aria-label=${t.facts.list}>
      <header class="page-head"><h1>${t.facts.title}</h1><${Status} chains=${chains} holding=${holding.data} truncated=${loaded.data?.truncated ?? false} /></header>
      <div class="toolbar facts-bar">
        <${Input} label=${t.facts.who} value=${query.get("who") ?? ""} list=${people} placeholder=${t.facts.whoHint} onInput=${/** @param {string} value */ (value) => setQuery({ who: value.trim(), id: null })} />
        <${Input} label=${t.facts.topic} type="search" value=${topic} placeholder=${t.facts.topicHint} onInput=${/** @param {string} q */ (q) => setQuery({ q })} />
        <${Slider} first=${first} at=${query.get("at")} />
      </div>
      ${error ? html`<div class="fill"><${Failed} error=${error} retry=${reload} /></div>`
        : loaded.data === null ? html`<div class="fill pad"><${Loading} lines=${9} /></div>`
        : chains.length === 0 ? html`<div class="fill">${who || topic
            ? html`<${Empty} title=${t.facts.noMatchTitle} body=${t.facts.noMatchBody}><${Button} onClick=${() => setQuery({ who: null, q: null })}>${t.facts.clear}<//><//>`
            : html`<${Empty} title=${t.facts.emptyTitle} body=${t.facts.emptyBody} />`}</div>`
        : html`<${Axis} first=${first} at=${query.get("at")} />
          <${VirtualList} label=${t.facts.list} rows=${chains} height=${narrow ? 96 : 84} current=${shown?.id ?? null} keyOf=${/** @param {Chain} chain */ (chain) => chain.id}
            row=${/** @param {Chain} chain */ (chain) => html`<${Lane} chain=${chain} first=${first} at=${query.get("at")} holding=${holding.data} openId=${openId} person=${!who} />`} />`}
    </section>
    ${openId !== null && html`<${Detail} key=${openId} id=${openId} onClose=${close} onChanged=${reload} />`}
  </div>`;
}

/** @param {{ chains: Chain[], holding: Set<string> | null, truncated: boolean }} props */
function Status({ chains, holding, truncated }) {
  const all = chains.flatMap((chain) => chain.facts);
  const number = all.filter(({ memory }) => holding?.has(memory.id)).length;
  return html`<div class="status" role="status">
    ${holding && html`<span class="quiet">${t.facts.holding(number, all.length)}</span>`}
    ${truncated && html`<span class="badge warn">${t.facts.truncated(MOST)}</span>`}
  </div>`;
}
