// What to do next, and how a program or an agent is connected.
import { html, useLoaded } from "../../ui/core.js";
import { AddMemoryButton } from "../../ui/add_memory.js";
import { Copy } from "../../ui/form.js";
import { Icon } from "../../ui/icons.js";
import { LoadSampleButton, RemoveSampleButton, sampleFile, sampleIn } from "../../ui/sample.js";
import { address } from "../../router.js";
import { session } from "../../session.js";
import { t } from "../../strings.js";

/** @param {{ overview: import("./overview.js").Overview, writes: boolean }} props `writes`: whether the key may store and ask */
export function Next({ overview, writes }) {
  const { facets, stores } = overview;
  const sample = stores.ok ? sampleIn(stores.data.data) : null;
  const only = stores.ok && stores.data.data.length === 1 ? stores.data.data[0]?.id : null;
  return html`<section class="card panel-card" aria-labelledby="home-next"><h2 id="home-next">${t.home.next}</h2>
    <ul class="steps">
      ${writes && sample === null && facets.ok && facets.data.total === 0 && html`<${Step} icon="download" title=${t.sample.title} body=${t.sample.body}><${LoadSampleButton} small kind="primary" /><//>`}
      ${sample !== null && html`<${LoadedSample} store=${sample} writes=${writes} />`}
      ${writes && html`<${Step} icon="add" title=${t.home.add} body=${t.home.addBody}><${AddMemoryButton} small /><//>
      <${Step} icon="upload" title=${t.home.upload} body=${t.home.uploadBody}><a class="button small" href=${address("knowledge", { store: only })}>${t.nav.knowledge}</a><//>
      <${Step} icon="ask" title=${t.home.ask} body=${t.home.askBody}><a class="button small" href=${address("ask")}>${t.nav.ask}</a><//>`}
      <${Step} icon="search" title=${t.home.search} body=${t.home.searchBody}><a class="button small" href=${address("memories")}>${t.nav.memories}</a><//>
      <${Step} icon="connect" title=${t.home.connect} body=${session.peek()?.login ? t.home.connectWithKey : t.home.connectBody}>
        <dl class="copied-lines">${addresses().map(([label, text]) => html`<div key=${label}><dt>${label}</dt><dd><code class="mono id">${text}</code><${Copy} text=${text} label=${t.copy} /></dd></div>`)}</dl><//>
    </ul>
  </section>`;
}

/** Where the sample is seen. @param {{ store: import("../../types.js").VectorStore, writes: boolean }} props */
function LoadedSample({ store, writes }) {
  const file = useLoaded("sample", sampleFile).data;
  const question = file?.questions[0]?.query;
  return html`<${Step} icon="check" title=${t.sample.loaded} body=${html`
      <a href=${address("sessions", { id: file?.session })}>${t.sample.conversation}</a>, <a href=${address("memories", { source: "sample" })}>${t.sample.memories}</a>, <a href=${address("knowledge", { store: store.id })}>${t.sample.document}</a>.
      ${writes && question && html` ${t.sample.tryAsking} <a href=${address("ask", { q: question, store: store.id })}>${question}</a>`}`}>
    ${writes && html`<${RemoveSampleButton} store=${store} />`}<//>`;
}

/** What clients are given, by what it is for. @returns {[string, string][]} */
function addresses() {
  const key = session.peek()?.login ? ' --header "Authorization: Bearer KEY"' : "";
  return [[t.home.claudeCode, `claude mcp add --transport http memoranda ${location.origin}/mcp${key}`], [t.home.openai, `${location.origin}/v1`]];
}

/** @param {{ icon: string, title: string, body: import("../../vendor/htm-preact.js").Child, children?: import("../../vendor/htm-preact.js").Child }} props */
function Step({ icon, title, body, children }) {
  return html`<li class="step"><span class="step-icon"><${Icon} name=${icon} /></span>
    <div class="step-text"><h3>${title}</h3><p class="quiet">${body}</p></div>
    <div class="step-action">${children}</div></li>`;
}
