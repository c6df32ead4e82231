// A question with its answer, and the passages and memories that the answer had.
import { html, useLoaded } from "../../ui/core.js";
import { get, part } from "../../api.js";
import { Badge, EvidenceBadge } from "../../ui/badge.js";
import { Button, Copy } from "../../ui/form.js";
import { unitsOf } from "../../ui/passage.js";
import { Failed } from "../../ui/states.js";
import { address, addressWith } from "../../router.js";
import { t } from "../../strings.js";
import { citedBy, isOpen, memoryOf } from "./answer.js";

/**
 * @typedef {import("./answer.js").Turn} Turn
 * @typedef {import("../../vendor/htm-preact.js").Child} Child
 * @typedef {Map<string, string | null>} Contents
 */

/** What follows the quotation of a memory, where no language model answers. */
const MEMORY_MARK = /(\(memory: (?:[^()\n]|\([^()\n]*\))*\)|\(from memory\))/;

/** @param {{ turn: Turn, last: boolean, cite: string | null, onAgain: () => void }} props */
export function TurnView({ turn, last, cite, onAgain }) {
  const open = isOpen(turn.state);
  const text = turn.parts.map((one) => one.text).join("\n\n");
  const contents = useContents(turn.memories);
  return html`<article class="turn" aria-busy=${String(open)}>
    <h2 class="turn-question"><span class="hidden">${t.ask.you}: </span>${turn.question}</h2>
    <section class="answer" aria-label=${t.ask.answer}>
      ${turn.parts.map((one) => html`<p class="answer-text" key=${one.id}>${withCitations(one, turn, contents)}</p>`)}
      ${open && html`<p class="quiet pulse">${t.ask.states[turn.state]} …</p>`}
      ${turn.state === "failed" && turn.error && html`<${Failed} error=${turn.error} retry=${onAgain} />`}
      ${!open && turn.state !== "failed" && text === "" && html`<p class="quiet">${t.ask.nothing}</p>`}
    </section>
    ${!open && turn.state !== "failed" && html`<div class="answer-foot">
      ${turn.quoted && html`<${Badge} title=${t.ask.quotedHint}>${t.ask.quoted}<//>`}
      ${(turn.state === "stopped" || turn.state === "incomplete") && html`<${Badge} tone="warn">${t.ask.states[turn.state]}<//>`}
      ${turn.evidence && html`<${EvidenceBadge} level=${turn.evidence.level} probability=${turn.evidence.probability} />`}
      ${turn.degraded.length > 0 && html`<${Badge} tone="warn">${t.degraded(turn.degraded)}<//>`}
      <span class="spring" />
      ${text !== "" && html`<${Copy} text=${text} />`}
      <${Button} small kind="ghost" onClick=${onAgain}>${t.ask.again}<//>
    </div>`}
    <${Sources} turn=${turn} last=${last} cite=${cite} contents=${contents} />
  </article>`;
}

/**
 * The texts of memories, by id; null for one that is not there any more.
 * @param {import("../../types.js").RetrievedMemory[]} memories
 * @returns {Contents}
 */
function useContents(memories) {
  const ids = memories.map(({ id }) => id);
  const loaded = useLoaded(ids.length === 0 ? null : ids.join(), async (abort) => {
    /** @type {import("../../api.js").Result<import("../../types.js").Memory>[]} */
    const results = await Promise.all(ids.map((id) => get(`/v1/memories/${part(id)}`, { abort })));
    return { ok: true, data: new Map(results.map((result, i) => [ids[i] ?? "", result.ok ? result.data.content : null])) };
  });
  return loaded.data ?? new Map();
}

/** The text of a part with a link for each citation. @param {import("./answer.js").Part} one @param {Turn} turn @param {Contents} contents @returns {Child} */
function withCitations({ text, annotations }, turn, contents) {
  /** @type {Child[]} */
  const shown = [];
  let at = 0;
  for (const annotation of [...annotations].sort((a, b) => a.start_index - b.start_index)) {
    const result = citedBy(annotation, turn.results);
    const start = unitsOf(text, annotation.start_index);
    const end = unitsOf(text, annotation.end_index);
    if (result === null || start < at || end > text.length) continue;
    const marker = /^\[\d+\]$/.test(annotation.text);
    shown.push(withMemories(text.slice(at, marker ? start : end), turn, contents), html`<a class="cite" href=${citeOf(turn, result.number)} aria-label=${t.ask.citation(result.number, result.filename)}>${result.number}</a>`);
    at = end;
  }
  return [...shown, withMemories(text.slice(at), turn, contents)];
}

/** The text with a link in place of each name of a memory that it quotes. @param {string} text @param {Turn} turn @param {Contents} contents @returns {Child} */
function withMemories(text, turn, contents) {
  const pieces = text.split(MEMORY_MARK);
  return pieces.map((piece, i) => {
    const place = i % 2 === 1 ? memoryOf(pieces[i - 1] ?? "", turn.memories.map(({ id }) => contents.get(id) ?? "")) : null;
    return place === null ? piece : html`<a class="cite" href=${address("memories", { id: turn.memories[place]?.id })} aria-label=${t.ask.memoryCitation(place + 1)} title=${piece}>M${place + 1}</a>`;
  });
}

/** @param {Turn} turn @param {number} number */
const citeOf = (turn, number) => addressWith({ cite: `${turn.id}.${number}` });

/** @param {{ turn: Turn, last: boolean, cite: string | null, contents: Contents }} props */
function Sources({ turn, last, cite, contents }) {
  if (turn.results.length + turn.memories.length === 0) return null;
  const cited = new Set(turn.parts.flatMap((one) => one.annotations.map((annotation) => citedBy(annotation, turn.results)?.number)));
  return html`<details class="sources" open=${last}>
    <summary>${t.ask.passages} <span class="quiet">${t.ask.sources(turn.results.length, turn.memories.length)}</span></summary>
    <ul>
      ${turn.results.map((result, i) => html`<li key=${`${result.number} ${i}`} class=${`source ${cite === `${turn.id}.${result.number}` ? "current" : ""}`}>
        <span class="source-number" aria-hidden="true">${result.number}</span>
        <div><a class="source-name" href=${citeOf(turn, result.number)}>${result.filename}</a>
          <span class="source-meta"><${Badge} tone="good">${t.ask.document}<//>
            ${cited.has(result.number) && html`<${Badge} tone="accent">${t.ask.cited}<//>`}
            <span class="quiet">${[t.knowledge.pages(result), result.heading, result.score.toFixed(2)].filter(Boolean).join(" · ")}</span></span>
          <p class="source-text">${result.text}</p></div>
      </li>`)}
      ${turn.memories.map((memory, i) => html`<${MemorySource} key=${memory.id} memory=${memory} number=${i + 1} content=${contents.get(memory.id)} />`)}
    </ul>
  </details>`;
}

/** @param {{ memory: import("../../types.js").RetrievedMemory, number: number, content: string | null | undefined }} props `content`: null for one that is gone, undefined while it is loaded */
function MemorySource({ memory, number, content }) {
  return html`<li class="source"><span class="source-number" aria-hidden="true">M${number}</span>
    <div><a class="source-name" href=${address("memories", { id: memory.id })}>${t.kinds[memory.kind] ?? memory.kind}</a>
      <span class="source-meta"><${Badge} tone="warn">${t.ask.memoryBadge}<//>
        ${memory.used && html`<${Badge} tone="accent">${t.ask.used}<//>`}
        <span class="quiet">${memory.score.toFixed(2)}</span></span>
      <p class="source-text">${content === null ? t.ask.gone : content}</p></div>
  </li>`;
}
