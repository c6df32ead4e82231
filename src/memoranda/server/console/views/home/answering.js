// How the server answers: with which models, whether facts are extracted, and whether it is ready.
import { html } from "../../ui/core.js";
import { Badge } from "../../ui/badge.js";
import { Pairs } from "../../ui/table.js";
import { address } from "../../router.js";
import { t } from "../../strings.js";

const QUOTING = "extractive"; // the model of a server without a language model

/** @param {{ overview: import("./overview.js").Overview }} props */
export function Answering({ overview: { models, ready, switches } }) {
  const all = models.ok ? models.data.data : [];
  const answering = all.filter((one) => one.dimensions === null && one.id !== QUOTING);
  const embedding = all.find((one) => one.dimensions !== null);
  /** @type {[string, import("../../vendor/htm-preact.js").Child][]} */
  const pairs = [
    [t.home.answers, !models.ok ? models.error.message : answering.length > 0 ? answering.map((one) => html`<span class="mono id" key=${one.id}>${one.id}</span>`) : html`${t.home.quotations}<p class="hint">${t.home.quotationsHint}</p>`],
    [t.home.embedding, embedding && html`<span class="mono id">${embedding.id}</span><p class="hint">${t.home.dimensions(embedding.dimensions ?? 0)}</p>`],
  ];
  if (switches !== null) {
    pairs.push([t.admin.switches.extraction, switches.ok ? html`<a href=${address("admin", { part: "switches" })}>${switches.data.in_force.extraction ? t.admin.on : t.admin.off}</a>` : switches.error.message]);
  }
  pairs.push([t.home.server, ready.ok ? html`<${Badge} tone="good">${t.admin.ready}<//>` : html`<${Badge} tone="bad">${t.admin.notReady}<//><p class="wrong">${ready.error.message}</p>`]);
  return html`<section class="card panel-card" aria-labelledby="home-answering"><h2 id="home-answering">${t.home.answering}</h2><${Pairs} pairs=${pairs} /></section>`;
}
