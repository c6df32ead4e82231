// Evaluation: two ways of searching compared on a bundled set or on questions of one's own.
import { html, useEffect, useLoaded, useState } from "../ui/core.js";
import { post } from "../api.js";
import { Badge } from "../ui/badge.js";
import { Button, Select } from "../ui/form.js";
import { Empty, Failed } from "../ui/states.js";
import { toast } from "../ui/toast.js";
import { setQuery, usePlace } from "../router.js";
import { t } from "../strings.js";
import { Means, Questions } from "./evaluation/compared.js";
import { OwnQuestions, useQuestions } from "./evaluation/questions.js";
import { SettingsForm, configurationOf, described, settingsOf, settingsText } from "./evaluation/settings.js";

/**
 * @typedef {import("../types.js").Evaluation} Evaluation
 * @typedef {import("./evaluation/questions.js").Question} Question
 */

const NAMES = ["A", "B"];
const OWN = "own";
const SETS = ["synthetic", "assistant", OWN];
const SECOND = "mode:keyword"; // what the defaults are compared with at first

/** @param {URLSearchParams} query */
const setOf = (query) => SETS.find((name) => name === query.get("set")) ?? "synthetic";
/** @param {URLSearchParams} query */
const textsOf = (query) => [query.get("a") ?? "", query.get("b") ?? SECOND];

export function View() {
  const { query } = usePlace();
  const own = useQuestions();
  const [asked, setAsked] = useState(/** @type {Question[]} own questions, as they were when they were asked */ ([]));
  const set = setOf(query);
  const configurations = textsOf(query).map((text, at) => configurationOf(NAMES[at] ?? "", settingsOf(text)));
  const body = { ...(set === OWN ? { questions: asked } : { set }), configurations };
  const ready = query.get("run") === "1" && (set !== OWN || asked.length > 0);
  const loaded = useLoaded(ready ? JSON.stringify(body) : null, (abort) => /** @type {Promise<import("../api.js").Result<Evaluation>>} */ (post("/v1/evaluations", body, { abort })));
  /** @param {boolean} same */
  const run = (same) => {
    if (same && (set !== OWN || asked === own)) loaded.reload();
    setAsked(own);
  };
  const cancel = () => {
    setQuery({ run: null }); // without it nothing is loaded, and the request under way is aborted
    toast(t.evaluation.cancelled);
  };
  return html`<div class="page scrolls">
    <header class="page-head"><h1>${t.evaluation.title}</h1></header>
    <p class="quiet lead">${t.evaluation.lead}</p>
    <${Choice} query=${query} questions=${own.length} busy=${loaded.loading} onRun=${run} />
    <section class="result" aria-label=${t.evaluation.result} aria-busy=${String(loaded.loading)}>
      ${loaded.loading ? html`<${Running} questions=${set === OWN ? asked.length : null} onCancel=${cancel} />`
        : loaded.error ? html`<${Failed} error=${loaded.error} retry=${loaded.reload} />`
        : loaded.data ? html`${set === OWN && asked !== own && html`<p role="status"><${Badge} tone="warn">${t.evaluation.changed}<//></p>`}<${Result} evaluation=${loaded.data} query=${query} />`
        : html`<${Empty} title=${t.evaluation.emptyTitle} body=${t.evaluation.emptyBody} />`}
    </section>
  </div>`;
}

/** `onRun` is told whether the address stays the same. @param {{ query: URLSearchParams, questions: number, busy: boolean, onRun: (same: boolean) => void }} props */
function Choice({ query, questions, busy, onRun }) {
  const [set, setSet] = useState(setOf(query));
  const [settings, setSettings] = useState(textsOf(query).map(settingsOf));
  useEffect(() => {
    setSet(setOf(query));
    setSettings(textsOf(query).map(settingsOf));
  }, [setOf(query), ...textsOf(query)]);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    const before = location.search;
    const [a, b] = settings.map(settingsText);
    setQuery({ set: set === "synthetic" ? null : set, a, b: b === SECOND ? null : b || "mode:", run: "1" }, { replace: false });
    onRun(location.search === before);
  };
  return html`<form class="card ask" onSubmit=${submit}>
    <${Select} label=${t.evaluation.set} value=${set} onChange=${setSet} options=${SETS.map((name) => ({ value: name, label: t.evaluation.sets[name] ?? name }))} />
    ${set === OWN && html`<${OwnQuestions} />`}
    ${settings.map((each, at) => html`<${SettingsForm} key=${NAMES[at]} name=${NAMES[at]} settings=${each} onChange=${/** @param {Record<string, string>} changed */ (changed) => setSettings(settings.map((one, i) => (i === at ? changed : one)))} />`)}
    <div class="actions"><span class="spring" /><${Button} type="submit" kind="primary" busy=${busy} disabled=${set === OWN && questions === 0}>${t.evaluation.run}<//></div>
  </form>`;
}

/** How long an evaluation has run, and the button that ends it. @param {{ questions: number | null, onCancel: () => void }} props */
function Running({ questions, onCancel }) {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const began = Date.now();
    const timer = setInterval(() => setSeconds(Math.floor((Date.now() - began) / 1000)), 1000);
    return () => clearInterval(timer);
  }, []);
  return html`<div class="card running">
    <progress aria-label=${t.evaluation.progress} />
    <p class="quiet">${t.evaluation.running(questions, seconds)}</p>
    <${Button} small icon="stop" onClick=${onCancel}>${t.cancel}<//>
  </div>`;
}

/** @param {{ evaluation: Evaluation, query: URLSearchParams }} props */
function Result({ evaluation, query }) {
  const degraded = evaluation.configurations.reduce((sum, { degraded: number }) => sum + number, 0);
  return html`
    <div class="status"><strong>${t.evaluation.means(evaluation.questions.length)}</strong> <span class="quiet">${t.evaluation.sets[evaluation.set]}</span>
      ${textsOf(query).map((text, at) => html`<span class="quiet" key=${NAMES[at]}><strong>${NAMES[at]}</strong> ${described(settingsOf(text))}</span>`)}
      ${degraded > 0 && html`<${Badge} tone="warn">${t.evaluation.degraded(degraded)}<//>`}</div>
    <${Means} evaluation=${evaluation} />
    <${Questions} evaluation=${evaluation} tab=${query.get("tab") ?? "all"} />`;
}
