// Context preview: the prompt for a question as the model gets it, piece by piece, and what was left out.
import { html, useLoaded, useState } from "../ui/core.js";
import { post } from "../api.js";
import { Badge, EvidenceBadge, Kind } from "../ui/badge.js";
import { Button, Chips, Copy, Input, TextArea } from "../ui/form.js";
import { Shares } from "../ui/meter.js";
import { ScoreBar } from "../ui/score.js";
import { StoreChoice } from "../ui/store_choice.js";
import { Empty, Failed, Loading } from "../ui/states.js";
import { Table } from "../ui/table.js";
import { Tabs } from "../ui/tabs.js";
import { address, setQuery, usePlace } from "../router.js";
import { t } from "../strings.js";

/**
 * @typedef {import("../types.js").Context} Context
 * @typedef {import("../types.js").Piece} Piece
 * @typedef {import("../types.js").LeftOut} LeftOut
 */

const BUDGET = 2000;

export function View() {
  const { query } = usePlace();
  const asked = query.get("q") ?? "";
  const key = asked === "" ? null : JSON.stringify(bodyOf(query));
  const loaded = useLoaded(key, (abort) => /** @type {Promise<import("../api.js").Result<Context>>} */ (post("/v1/context", bodyOf(query), { abort })));
  return html`<div class="page scrolls">
    <header class="page-head"><h1>${t.context.title}</h1></header>
    <p class="quiet lead">${t.context.lead}</p>
    <${Question} key=${asked} query=${query} busy=${loaded.loading} onAgain=${loaded.reload} />
    <section class="result" aria-label=${t.context.title} aria-busy=${String(loaded.loading)}>
      ${loaded.error ? html`<${Failed} error=${loaded.error} retry=${loaded.reload} />`
        : loaded.data ? html`<${Prompt} context=${loaded.data} budget=${budgetOf(query)} tab=${query.get("tab") ?? "pieces"} />`
        : loaded.loading ? html`<${Loading} lines=${8} />`
        : html`<${Empty} title=${t.context.emptyTitle} body=${t.context.emptyBody} />`}
    </section>
  </div>`;
}

/** @param {URLSearchParams} query */
const budgetOf = (query) => Number(query.get("budget")) || BUDGET;

/** The request that an address stands for. @param {URLSearchParams} query */
function bodyOf(query) {
  const scopes = query.getAll("scope");
  return {
    query: query.get("q") ?? "", budget: budgetOf(query), explain: true, stores: query.getAll("store"),
    ...(scopes.length ? { scopes } : {}),
    ...(query.get("session") ? { session_id: query.get("session") } : {}),
    ...(query.get("system") ? { system: query.get("system") } : {}),
  };
}

/** @param {{ query: URLSearchParams, busy: boolean, onAgain: () => void }} props */
function Question({ query, busy, onAgain }) {
  const [text, setText] = useState(query.get("q") ?? "");
  const [budget, setBudget] = useState(String(budgetOf(query)));
  const [scopes, setScopes] = useState(query.getAll("scope"));
  const [session, setSession] = useState(query.get("session") ?? "");
  const [system, setSystem] = useState(query.get("system") ?? "");
  const [stores, setStores] = useState(query.getAll("store"));
  /** @param {Event} [event] */
  const submit = (event) => {
    event?.preventDefault();
    if (text.trim() === "") return;
    const before = location.search;
    setQuery({ q: text.trim(), budget: Number(budget) === BUDGET ? null : budget, scope: scopes, session, system, store: stores }, { replace: false });
    if (location.search === before) onAgain();
  };
  /** @param {KeyboardEvent} event */
  const keyed = (event) => {
    if (event.key === "Enter" && !event.shiftKey) submit(event);
  };
  return html`<form class="card ask" onSubmit=${submit}>
    <${TextArea} label=${t.context.question} rows=${2} value=${text} onInput=${setText} placeholder=${t.context.questionHint} onKeyDown=${keyed} />
    <div class="ask-fields">
      <${Input} label=${t.context.budget} type="number" min=${1} max=${1000000} step=${1} value=${budget} onInput=${setBudget} />
      <${Chips} label=${t.context.scopes} values=${scopes} onChange=${setScopes} placeholder=${t.context.scopesHint} />
      <${Input} label=${t.context.session} value=${session} onInput=${setSession} placeholder=${t.context.sessionHint} />
      <${Input} label=${t.context.system} value=${system} onInput=${setSystem} placeholder=${t.context.systemHint} />
    </div>
    <div class="actions">
      <${StoreChoice} chosen=${stores} onChange=${setStores} />
      <span class="spring" />
      <${Button} type="submit" kind="primary" busy=${busy} disabled=${text.trim() === ""}>${t.context.submit}<//>
    </div>
  </form>`;
}

/** @param {{ context: Context, budget: number, tab: string }} props */
function Prompt({ context, budget, tab }) {
  const { pieces, left_out: left, messages } = context;
  const tabs = [
    { id: "pieces", label: t.context.pieces, count: pieces.length }, { id: "prompt", label: t.context.prompt },
    { id: "messages", label: t.context.messages, count: messages.length }, { id: "left", label: t.context.leftOut, count: left.length },
  ];
  return html`
    <div class="status"><strong>${t.context.used(context.tokens, budget)}</strong>
      <${EvidenceBadge} level=${context.evidence} probability=${context.evidence_probability} />
      <span class="quiet">${t.context.made(context.query_time)}</span>
      ${context.degraded.length > 0 && html`<span class="badge warn">${t.degraded(context.degraded)}</span>`}</div>
    <${BudgetShares} context=${context} budget=${budget} />
    <${Tabs} label=${t.context.title} tabs=${tabs} current=${tab} onChange=${/** @param {string} id */ (id) => setQuery({ tab: id === "pieces" ? null : id })}>
      ${tab === "pieces" && (pieces.length ? html`<ol class="pieces">${pieces.map((piece, i) => html`<${PieceCard} key=${i} piece=${piece} />`)}</ol>` : html`<p class="quiet">${t.context.noPieces}</p>`)}
      ${tab === "prompt" && html`<div class="code-head"><${Copy} text=${context.text} /></div><pre class="code prompt" tabIndex=${0}>${context.text}</pre>`}
      ${tab === "messages" && messages.map(({ role, content }, i) => html`<article class="message" key=${i}><h2>${role}</h2><pre class="code" tabIndex=${0}>${content}</pre></article>`)}
      ${tab === "left" && (left.length ? html`<${Left} rows=${left} />` : html`<p class="quiet">${t.context.nothingLeftOut}</p>`)}
    <//>`;
}

/** How the budget is shared. @param {{ context: Context, budget: number }} props */
function BudgetShares({ context, budget }) {
  const parts = Object.entries(context.parts).map(([name, part]) => ({ id: name, label: t.context.parts[name] ?? name, tone: name, value: part.tokens }));
  return html`<${Shares} parts=${parts} whole=${Math.max(budget, context.tokens)} format=${t.number} />`;
}

/** @param {{ piece: Piece }} props */
function PieceCard({ piece }) {
  const memory = !["chunk"].includes(piece.kind) && piece.kind in t.kinds;
  const found = Object.keys(piece.scores).length > 0;
  return html`<li class="piece">
    <header>
      <span class=${`dot part-${piece.part}`} aria-hidden="true" /><strong>${t.context.parts[piece.part] ?? piece.part}</strong>
      ${piece.kind in t.kinds && html`<${Kind} kind=${piece.kind} />`}
      ${piece.citation?.mark && html`<${Badge}>${piece.citation.mark}<//>`}
      ${piece.cut && html`<${Badge} tone="warn">${t.context.cut}<//>`}
      <span class="spring" />
      <span class="quiet">${t.tokens(piece.tokens)}</span>
    </header>
    <p class="piece-text">${piece.text}</p>
    <footer>
      ${memory ? html`<a class="mono id" href=${address("memories", { id: piece.id })}>${piece.id}</a>` : piece.id && html`<span class="mono id quiet">${piece.citation?.filename ?? piece.id}</span>`}
      ${found && html`<div class="piece-scores"><${ScoreBar} compact label=${t.scores.score} value=${piece.score} tone="total" />
        ${Object.entries(piece.scores).filter(([name]) => name !== "score").slice(0, 3).map(([name, value]) => html`<${ScoreBar} compact key=${name} label=${name} value=${value} />`)}</div>`}
    </footer>
  </li>`;
}

/** @param {{ rows: LeftOut[] }} props */
function Left({ rows }) {
  return html`<${Table} label=${t.context.leftOut} rows=${rows} keyOf=${/** @param {LeftOut} row */ (row) => `${row.part} ${row.id}`} columns=${[
    { title: t.memories.id, wide: true, cell: /** @param {LeftOut} row */ (row) => row.kind in t.kinds && row.kind !== "chunk" ? html`<a class="mono id" href=${address("memories", { id: row.id })}>${row.id}</a>` : html`<span class="mono id">${row.id}</span>` },
    { title: t.context.part, cell: /** @param {LeftOut} row */ (row) => t.context.parts[row.part] ?? row.part },
    { title: t.memories.kind, cell: /** @param {LeftOut} row */ (row) => html`<${Kind} kind=${row.kind} />` },
    { title: t.context.reason, wide: true, cell: /** @param {LeftOut} row */ (row) => html`${t.context.why[row.why] ?? row.why}${row.of && html` <span class="quiet mono">(${t.context.of} ${row.of})</span>`}` },
    { title: t.scores.score, number: true, cell: /** @param {LeftOut} row */ (row) => row.score.toFixed(3) },
  ]} />`;
}
