// Two configurations compared: means side by side, and each question with what both returned.
import { html } from "../../ui/core.js";
import { Badge } from "../../ui/badge.js";
import { Table } from "../../ui/table.js";
import { Tabs } from "../../ui/tabs.js";
import { setQuery } from "../../router.js";
import { t } from "../../strings.js";

/**
 * @typedef {import("../../types.js").Evaluation} Evaluation
 * @typedef {import("../../types.js").EvaluatedQuestion} EvaluatedQuestion
 * @typedef {import("../../types.js").EvaluatedAnswer} EvaluatedAnswer
 */

const SHOWN = ["hit@1", "recall@1", "recall@5", "recall@10", "mrr", "ndcg@10", "noise@1", "noise@5"];
const BY_CATEGORY = "hit@1";
const LESS_IS_BETTER = new Set(["noise@1", "noise@5"]);
const BEYOND = 1_000_000; // a rank below all others: nothing relevant was returned

/** @param {{ evaluation: Evaluation }} props */
export function Means({ evaluation: { configurations, questions } }) {
  const [first, second] = configurations;
  const all = first?.scores.all ?? {};
  const rows = SHOWN.filter((name) => name in all);
  const categories = Object.keys(first?.scores ?? {}).filter((name) => name !== "all");
  /** @param {number} at @param {string} group @param {string} name */
  const value = (at, group, name) => configurations[at]?.scores[group]?.[name] ?? 0;
  /** @param {string} group @param {string} name */
  const change = (group, name) => html`<${Change} by=${value(1, group, name) - value(0, group, name)} less=${LESS_IS_BETTER.has(name)} />`;
  const columns = /** @param {string} title @param {(row: string) => import("../../vendor/htm-preact.js").Child} named @param {(row: string) => [string, string]} of */ (title, named, of) => [
    { title, wide: true, cell: named },
    ...configurations.map(({ name }, at) => ({ title: name, number: true, cell: /** @param {string} row */ (row) => value(at, ...of(row)).toFixed(3) })),
    ...(second ? [{ title: t.evaluation.change, number: true, cell: /** @param {string} row */ (row) => change(...of(row)) }] : []),
  ];
  return html`<div class="means">
    <${Table} label=${t.evaluation.means(questions.length)} rows=${rows} keyOf=${/** @param {string} row */ (row) => row} columns=${columns(t.evaluation.measure, (row) => html`<${Measure} name=${row} />`, (row) => ["all", row])} />
    ${categories.length > 0 && html`<${Table} label=${t.evaluation.byCategory} rows=${categories} keyOf=${/** @param {string} row */ (row) => row} columns=${columns(t.evaluation.category, (row) => row, (row) => [row, BY_CATEGORY])} />`}
  </div>`;
}

/** What a measure says, and its term in the field. @param {{ name: string }} props */
function Measure({ name }) {
  return html`${t.evaluation.measures[name] ?? name} <span class="term">${t.evaluation.terms[name] ?? name}</span>`;
}

/** @param {{ by: number, less: boolean }} props */
function Change({ by, less }) {
  if (Math.abs(by) < 0.0005) return html`<span class="quiet">=</span>`;
  const better = by > 0 !== less;
  return html`<${Badge} tone=${better ? "good" : "bad"}>${by > 0 ? "+" : "−"}${Math.abs(by).toFixed(3)}<//>`;
}

/** @param {EvaluatedAnswer | undefined} answer */
const rankOf = (answer) => answer?.rank ?? BEYOND;

/** The groups of questions that the tabs show. @type {Record<string, (question: EvaluatedQuestion) => boolean>} */
const GROUPS = {
  all: () => true,
  better: ({ answers: [a, b] }) => rankOf(b) < rankOf(a),
  worse: ({ answers: [a, b] }) => rankOf(b) > rankOf(a),
  missed: ({ answers }) => answers.every((answer) => answer.rank === null),
};

/** @param {{ evaluation: Evaluation, tab: string }} props */
export function Questions({ evaluation, tab }) {
  const names = evaluation.configurations.map(({ name }) => name);
  const groups = Object.entries(GROUPS).filter(([id]) => names.length > 1 || id === "all" || id === "missed");
  const tabs = groups.map(([id, belongs]) => ({ id, label: t.evaluation.groups[id] ?? id, count: evaluation.questions.filter(belongs).length }));
  const current = tabs.some(({ id }) => id === tab) ? tab : "all";
  const questions = evaluation.questions.filter(GROUPS[current] ?? (() => true));
  return html`<${Tabs} label=${t.evaluation.questions} tabs=${tabs} current=${current} onChange=${/** @param {string} id */ (id) => setQuery({ tab: id === "all" ? null : id })}>
    ${questions.length === 0 ? html`<p class="quiet">${t.evaluation.noneOfThem}</p>`
      : html`<ul class="compared" aria-label=${t.evaluation.questions}>${questions.map((question, at) => html`<li key=${`${at} ${question.query}`}><${Question} question=${question} names=${names} texts=${evaluation.texts} /></li>`)}</ul>`}
  <//>`;
}

/** @param {{ question: EvaluatedQuestion, names: string[], texts: Record<string, string> }} props */
function Question({ question, names, texts }) {
  const { query, category, answers, relevant } = question;
  const missed = relevant.filter((id) => answers.every((answer) => !answer.ids.includes(id)));
  return html`<details class="card">
    <summary><span class="compared-query">${query}</span>${category && html`<${Badge}>${category}<//>`}
      <span class="ranks">${answers.map((answer, at) => html`<span key=${names[at]}><span class="quiet">${names[at]}</span> ${answer.rank === null ? html`<${Badge} tone="bad">${t.evaluation.missing}<//>` : html`<${Badge} tone=${answer.rank === 1 ? "good" : "warn"}>${t.evaluation.rank(answer.rank)}<//>`}</span>`)}</span>
    </summary>
    <div class="compared-sides">${answers.map((answer, at) => html`<section key=${names[at]} aria-label=${names[at]}>
      <h3>${names[at]}</h3>
      <ol>${answer.ids.map((id, place) => html`<li key=${id}><${Result} question=${question} id=${id} score=${answer.scores[place] ?? 0} text=${texts[id] ?? id} /></li>`)}</ol>
    </section>`)}</div>
    ${missed.length > 0 && html`<h3>${t.evaluation.notReturned}</h3><ul>${missed.map((id) => html`<li key=${id}>${texts[id] ?? id}</li>`)}</ul>`}
  </details>`;
}

/** @param {{ question: EvaluatedQuestion, id: string, score: number, text: string }} props */
function Result({ question, id, score, text }) {
  const relevant = question.relevant.includes(id);
  const misleading = question.misleading.includes(id);
  return html`<span>${relevant && html`<${Badge} tone="good">${t.evaluation.answers}<//> `}${misleading && html`<${Badge} tone="bad">${t.evaluation.misleads}<//> `}${text}</span>
    <span class="quiet score-number">${score.toFixed(2)}</span>`;
}
