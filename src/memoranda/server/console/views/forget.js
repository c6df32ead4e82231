// Forget: name what to erase, see what would go, erase it, and keep the receipt.
import { html, useLoaded, useState } from "../ui/core.js";
import { post } from "../api.js";
import { Confirm } from "../ui/dialog.js";
import { Button, Chips, Input, Select } from "../ui/form.js";
import { Empty, Failed, Loading } from "../ui/states.js";
import { Pairs } from "../ui/table.js";
import { toast } from "../ui/toast.js";
import { setQuery, usePlace } from "../router.js";
import { t } from "../strings.js";
import { Files, Given, Groups, counted } from "./forget/shown.js";
import { isEverywhere, selectionOf } from "./forget/selection.js";

/** @typedef {import("./forget/selection.js").Selection} Selection */

const CLEARED = { q: null, user: null, scope: null, tag: null, kind: null, source: null, since: null, until: null };

export function View() {
  const { query } = usePlace();
  const [receipt, setReceipt] = useState(/** @type {import("../types.js").Receipt | null} */ (null));
  const selection = selectionOf(query);
  const again = () => {
    setReceipt(null);
    setQuery(CLEARED);
  };
  return html`<div class="page scrolls">
    <header class="page-head"><h1>${t.forget.title}</h1></header>
    ${receipt ? html`<${Given} receipt=${receipt} onAgain=${again} />` : html`
      <p class="quiet lead">${t.forget.lead}</p>
      <${Form} key=${query.toString()} query=${query} />
      ${selection ? html`<${Preview} selection=${selection} onErased=${setReceipt} />` : html`<${Empty} title=${t.forget.emptyTitle} body=${t.forget.emptyBody} />`}`}
  </div>`;
}

/** @param {{ query: URLSearchParams }} props */
function Form({ query }) {
  const [text, setText] = useState(query.get("q") ?? "");
  const [user, setUser] = useState(query.get("user") ?? "");
  const [scope, setScope] = useState(query.getAll("scope"));
  const [tag, setTag] = useState(query.getAll("tag"));
  const [kind, setKind] = useState(query.get("kind") ?? "");
  const [source, setSource] = useState(query.get("source") ?? "");
  const [since, setSince] = useState(query.get("since") ?? "");
  const [until, setUntil] = useState(query.get("until") ?? "");
  const kinds = [{ value: "", label: t.forget.anyKind }, ...Object.entries(t.kinds).filter(([one]) => one !== "chunk").map(([value, label]) => ({ value, label }))];
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    setQuery({ q: text.trim(), user: user.trim(), scope, tag, kind, source: source.trim(), since, until }, { replace: false });
  };
  const named = [text.trim(), user.trim(), kind, source.trim(), since, until].some(Boolean) || scope.length > 0 || tag.length > 0;
  return html`<form class="card ask" onSubmit=${submit}>
    <${Input} label=${t.forget.words} value=${text} onInput=${setText} placeholder=${t.forget.wordsHint} />
    <div class="forget-fields">
      <${Input} label=${t.forget.user} value=${user} onInput=${setUser} />
      <${Chips} label=${t.forget.scopes} values=${scope} onChange=${setScope} placeholder=${t.forget.scopesHint} />
      <${Chips} label=${t.forget.tags} values=${tag} onChange=${setTag} placeholder=${t.forget.tagsHint} />
      <${Select} label=${t.forget.kind} value=${kind} options=${kinds} onChange=${setKind} />
      <${Input} label=${t.forget.source} value=${source} onInput=${setSource} />
      <div class="two"><${Input} label=${t.forget.since} type="date" value=${since} onInput=${setSince} /><${Input} label=${t.forget.until} type="date" value=${until} onInput=${setUntil} /></div>
    </div>
    <div class="actions"><span class="hint">${t.forget.combined}</span><span class="spring" /><${Button} type="submit" kind="primary" disabled=${!named}>${t.forget.preview}<//></div>
  </form>`;
}

/** @param {{ selection: Selection, onErased: (receipt: import("../types.js").Receipt) => void }} props */
function Preview({ selection, onErased }) {
  const loaded = useLoaded(JSON.stringify(selection), (abort) => /** @type {Promise<import("../api.js").Result<import("../types.js").ForgetPreview>>} */ (post("/v1/memories/forget/preview", selection, { abort })));
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const everywhere = isEverywhere(selection);
  const erase = async () => {
    setBusy(true);
    /** @type {import("../api.js").Result<import("../types.js").Receipt>} */
    const result = await post("/v1/memories/forget", selection);
    setBusy(false);
    if (result.ok) onErased(result.data);
    else toast(result.error.message, { bad: true });
  };
  if (loaded.error) return html`<${Failed} error=${loaded.error} retry=${loaded.reload} />`;
  if (loaded.data === null || loaded.loading) return html`<${Loading} lines=${6} />`;
  const { counts, kinds, files } = loaded.data;
  const { memories = 0, ...others } = counts;
  const more = Object.values(others).reduce((sum, number) => sum + number, 0);
  return html`<section class="result" aria-label=${t.forget.previewTitle}>
    <div class="status preview-head"><h2>${t.forget.previewTitle}</h2><span class="quiet" role="status">${t.forget.total(memories)}</span></div>
    <${Groups} groups=${kinds} />
    ${more > 0 && html`<div class="card besides"><h3>${t.forget.besides}</h3><${Pairs} pairs=${counted(others)} />
      ${files.length > 0 && html`<h3>${t.forget.wholeFiles}</h3><${Files} names=${files} total=${others.files ?? 0} />`}</div>`}
    <ul class="points notes">
      ${!everywhere && html`<li>${t.forget.memoriesAlone}</li>`}
      <li>${t.forget.derived}</li>
    </ul>
    <div class="actions"><span class="spring" /><${Button} kind="danger" icon="forget" busy=${busy} disabled=${memories + more === 0 && !everywhere} onClick=${() => setAsking(true)}>${t.forget.erase}<//></div>
    ${asking && html`<${Confirm} title=${t.forget.confirmTitle(memories, more)} body=${t.forget.confirmBody} action=${t.forget.erase}
      onConfirm=${() => void erase()} onClose=${() => setAsking(false)} />`}
  </section>`;
}
