// Questions of one's own, with the memories that answer them. They stay in this tab until it is closed; a file keeps them.
import { html, signal, useLoaded, useRef, useSignal, useState } from "../../ui/core.js";
import { post } from "../../api.js";
import { Dialog } from "../../ui/dialog.js";
import { Button, Checkbox, IconButton, Input } from "../../ui/form.js";
import { Loaded } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { session } from "../../session.js";
import { t } from "../../strings.js";

/**
 * @typedef {{ query: string, relevant: string[], misleading?: string[], scopes?: string[], category?: string }} Question
 * @typedef {import("../../types.js").SearchAnswer} SearchAnswer
 * @typedef {import("../../types.js").Hit} Hit
 */

/** @type {import("../../vendor/signals-core.js").Signal<Question[]>} */
export const questions = signal(/** @type {Question[]} */ ([]));
let owner = "";
const MOST = 500; // questions of one evaluation

/** The questions of whoever is signed in. */
export function useQuestions() {
  const { tenant, user } = session.peek() ?? {};
  const key = `memoranda-questions ${JSON.stringify([tenant, user])}`;
  if (owner !== key) {
    owner = key;
    questions.value = (sessionStorage.getItem(key) ?? "").split("\n").flatMap((line) => questionIn(line) ?? []);
  }
  return useSignal(questions);
}

/** Keeps the questions in this tab, as lines of JSON. @param {Question[]} changed */
function keep(changed) {
  questions.value = changed;
  try {
    sessionStorage.setItem(owner, linesOf(changed));
  } catch { // too large for the browser
    toast(t.evaluation.notKept, { bad: true });
  }
}

/** @param {Question[]} list */
const linesOf = (list) => list.map((question) => `${JSON.stringify(question)}\n`).join("");

/** The list, and the ways to change it. */
export function OwnQuestions() {
  const list = useQuestions();
  const [adding, setAdding] = useState(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  return html`<div class="own-questions">
    <div class="actions">
      <${Button} small icon="add" onClick=${() => setAdding(true)}>${t.evaluation.add}<//>
      <input type="file" accept=".jsonl,.ndjson" hidden ref=${field} aria-label=${t.evaluation.file} onChange=${readFile} />
      <${Button} small icon="upload" onClick=${() => field.current?.click()}>${t.evaluation.read}<//>
      ${list.length > 0 && html`<${Button} small icon="download" onClick=${() => saveFile(list)}>${t.evaluation.save}<//>`}
    </div>
    ${list.length > 0 ? html`<ul aria-label=${t.evaluation.own}>${list.map((question, at) => html`<li key=${`${at} ${question.query}`}>
        <span>${question.query}</span> <span class="quiet">${t.evaluation.answeredBy(question.relevant.length)}</span>
        <${IconButton} icon="close" label=${t.evaluation.remove(question.query)} onClick=${() => keep(list.filter((one) => one !== question))} />
      </li>`)}</ul>` : html`<p class="quiet">${t.evaluation.noQuestions}</p>`}
    ${adding && html`<${NewQuestion} onClose=${() => setAdding(false)} />`}
  </div>`;
}

/** A question is searched, and the results that answer it are marked. @param {{ onClose: () => void }} props */
function NewQuestion({ onClose }) {
  const [text, setText] = useState("");
  const [asked, setAsked] = useState("");
  const [chosen, setChosen] = useState(/** @type {string[]} */ ([]));
  const body = { query: asked, limit: 20, threshold: 0 };
  const found = useLoaded(asked || null, (abort) => /** @type {Promise<import("../../api.js").Result<SearchAnswer>>} */ (post("/v1/memories/search", body, { abort })));
  /** @param {Event} [event] */
  const search = (event) => {
    event?.preventDefault();
    setChosen([]);
    setAsked(text.trim());
  };
  const add = () => {
    keep([...questions.peek(), { query: asked, relevant: chosen }]);
    onClose();
  };
  const ready = asked !== "" && asked === text.trim() && chosen.length > 0;
  return html`<${Dialog} title=${t.evaluation.add} onClose=${onClose} actions=${html`
    <${Button} onClick=${onClose}>${t.cancel}<//><${Button} kind="primary" disabled=${!ready} onClick=${add}>${t.evaluation.addIt}<//>`}>
    <form class="question-form" onSubmit=${search}>
      <${Input} label=${t.evaluation.question} value=${text} onInput=${setText} autofocus />
      <${Button} type="submit" icon="search" disabled=${text.trim() === ""}>${t.evaluation.search}<//>
    </form>
    ${asked && html`<p class="quiet">${t.evaluation.mark}</p>
      <${Loaded} of=${found} lines=${5}>${/** @param {SearchAnswer} answer */ (answer) => answer.results.length === 0 ? html`<p>${t.memories.noMatchTitle}</p>` : html`<ul class="candidates" aria-label=${t.evaluation.candidates}>
        ${answer.results.map(({ memory }) => html`<li key=${memory.id}><label>
          <${Checkbox} label=${memory.content} checked=${chosen.includes(memory.id)} onChange=${/** @param {boolean} on */ (on) => setChosen(on ? [...chosen, memory.id] : chosen.filter((id) => id !== memory.id))} />
          <span>${memory.content}</span>
        </label></li>`)}
      </ul>`}<//>`}
  <//>`;
}

/** @param {Event} event */
async function readFile(event) {
  const input = /** @type {HTMLInputElement} */ (event.currentTarget);
  const file = input.files?.[0];
  input.value = "";
  if (!file) return;
  const lines = (await file.text()).split("\n").map((line, at) => ({ line: line.trim(), number: at + 1 })).filter(({ line }) => line !== "");
  /** @type {Question[]} */
  const read = [];
  for (const { line, number } of lines) {
    const question = questionIn(line);
    if (question === null) return toast(t.evaluation.wrongLine(file.name, number), { bad: true });
    read.push(question);
  }
  if (read.length > MOST) return toast(t.evaluation.tooMany(read.length, MOST), { bad: true });
  keep(read);
  return toast(t.evaluation.readFrom(read.length, file.name));
}

/** The question in a line; null if it is none. @param {string} line @returns {Question | null} */
function questionIn(line) {
  try {
    const value = JSON.parse(line);
    const good = typeof value.query === "string" && value.query.trim() !== "" && Array.isArray(value.relevant) && value.relevant.length > 0;
    return good ? value : null;
  } catch {
    return null;
  }
}

/** @param {Question[]} list */
function saveFile(list) {
  const url = URL.createObjectURL(new Blob([linesOf(list)], { type: "application/x-ndjson" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = "questions.jsonl";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
