// Ask: a conversation over memory and vector stores, with streamed answers whose citations open the document.
import { html, useEffect, useHotkey, useLoaded, useRef } from "../ui/core.js";
import { get } from "../api.js";
import { Badge } from "../ui/badge.js";
import { Icon } from "../ui/icons.js";
import { Modes } from "../ui/modes.js";
import { Empty, Failed, Loading } from "../ui/states.js";
import { address, addressWith, setQuery, usePlace } from "../router.js";
import { t } from "../strings.js";
import { isOpen, quotesOf } from "./ask/answer.js";
import { Cited } from "./ask/cited.js";
import { Composer } from "./ask/composer.js";
import { useConversation } from "./ask/conversation.js";
import { OwnCited } from "./ask/own_cited.js";
import { TurnView } from "./ask/turn.js";
import { UploadAsk } from "./ask/upload_ask.js";

/** @typedef {import("./ask/answer.js").Turn} Turn */

const QUOTING = "extractive"; // the model of a server without a language model

export function View() {
  const { query } = usePlace();
  return query.get("mode") === "uploads" ? html`<${Uploads} query=${query} />` : html`<${Talk} query=${query} />`;
}

/** @param {{ query: URLSearchParams }} props */
function Uploads({ query }) {
  const cite = query.get("cite");
  const close = () => setQuery({ cite: null });
  useHotkey("Escape", () => cite !== null && close());
  return html`<div class=${`page split ${cite === null ? "" : "with-detail"}`}>
    <section class="list-pane talk" aria-label=${t.ask.conversation}>
      <header class="page-head"><h1>${t.ask.title}</h1><${AskModes} current="uploads" />
        ${query.get("session") !== null && html`<a class="button small" href=${addressWith({ session: null, q: null, cite: null })}><${Icon} name="add" />${t.ask.fresh}</a>`}</header>
      <${UploadAsk} query=${query} />
    </section>
    ${cite !== null && html`<${OwnCited} key=${cite} cite=${cite} onClose=${close} />`}
  </div>`;
}

/** What is asked: stores and memory, or documents of one's own. @param {{ current: "" | "uploads" }} props */
function AskModes({ current }) {
  return html`<${Modes} label=${t.ask.modes} current=${current} modes=${[
    { id: "", label: t.ask.overStores, href: address("ask") }, { id: "uploads", label: t.ask.overUploads, href: address("ask", { mode: "uploads" }) },
  ]} />`;
}

/** @param {{ query: URLSearchParams }} props */
function Talk({ query }) {
  const talk = useConversation(query.get("response"));
  const busy = talk.turns.some((turn) => isOpen(turn.state));
  const models = useLoaded("models", (abort) => /** @type {Promise<import("../api.js").Result<{ data: import("../types.js").Model[] }>>} */ (get("/v1/models", { abort })));
  const answering = (models.data?.data ?? []).filter((one) => one.dimensions === null).map((one) => one.id);
  const cite = query.get("cite");
  const cited = citedIn(talk.turns, cite);
  const close = () => setQuery({ cite: null });
  useHotkey("Escape", () => cite !== null && close());
  /** @param {string} question */
  const ask = (question) => talk.ask({
    question, stores: query.getAll("store"), memory: query.get("memory") !== "off", user: query.get("user")?.trim() ?? "", history: query.get("history") !== "off",
    model: query.get("model") ?? answering[0] ?? QUOTING,
  });
  return html`<div class=${`page split ${cited === null ? "" : "with-detail"}`}>
    <section class="list-pane talk" aria-label=${t.ask.conversation}>
      <header class="page-head"><h1>${t.ask.title}</h1><${AskModes} current="" />
        <div class="status">${answering.length === 1 && answering[0] === QUOTING && html`<${Badge}>${t.ask.noModel}<//>`}</div>
        ${talk.turns.length > 0 && html`<a class="button small" href=${addressWith({ response: null, cite: null, q: null })}><${Icon} name="add" />${t.ask.fresh}</a>`}</header>
      <${Turns} talk=${talk} cite=${cite} onAsk=${ask} />
      <${Composer} query=${query} stores busy=${busy} models=${answering} onAsk=${ask} onStop=${talk.stop} />
    </section>
    ${cited !== null && html`<${Cited} key=${cite} result=${cited.result} stores=${cited.stores} quotes=${cited.quotes} onClose=${close} />`}
  </div>`;
}

/** The passage that the address names. @param {Turn[]} turns @param {string | null} cite */
function citedIn(turns, cite) {
  const at = cite?.lastIndexOf(".") ?? -1;
  const turn = at < 0 ? undefined : turns.find((one) => one.id === cite?.slice(0, at));
  const result = turn?.results.find((one) => one.number === Number(cite?.slice(at + 1)));
  return turn && result ? { result, stores: turn.stores, quotes: quotesOf(turn, result.number) } : null;
}

/** @param {{ talk: ReturnType<typeof useConversation>, cite: string | null, onAsk: (question: string) => void }} props */
function Turns({ talk, cite, onAsk }) {
  const { turns, error, loading } = talk;
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const follows = useRef(true);
  const last = turns.at(-1);
  useEffect(() => {
    follows.current = true;
    box.current?.lastElementChild?.scrollIntoView({ block: "start" });
  }, [last?.key]);
  useEffect(() => {
    if (box.current && follows.current && last && isOpen(last.state)) box.current.scrollTop = box.current.scrollHeight;
  }, [turns]);
  if (error) return html`<div class="fill"><${Failed} error=${error} retry=${talk.reload} /></div>`;
  if (loading) return html`<div class="fill pad"><${Loading} lines=${8} /></div>`;
  if (turns.length === 0) return html`<div class="fill"><${Empty} title=${t.ask.emptyTitle} body=${t.ask.emptyBody} /></div>`;
  const scrolled = () => {
    const element = /** @type {HTMLElement} */ (box.current);
    follows.current = element.scrollHeight - element.scrollTop - element.clientHeight < 48;
  };
  return html`<div class="turns" ref=${box} onScroll=${scrolled} role="log" tabIndex=${0} aria-label=${t.ask.conversation}>
    ${turns.map((turn) => html`<${TurnView} key=${turn.key} turn=${turn} last=${turn === last} cite=${cite} onAgain=${() => onAsk(turn.question)} />`)}
  </div>`;
}
