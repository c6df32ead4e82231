// One fact: when it holds, its versions, and the messages that it rests on.
import { html, useEffect, useLoaded, useRef, useState } from "../../ui/core.js";
import { get, part, post } from "../../api.js";
import { Badge, Tags } from "../../ui/badge.js";
import { Confirm } from "../../ui/dialog.js";
import { Button, IconButton } from "../../ui/form.js";
import { Loaded } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { address, addressWith, setQuery } from "../../router.js";
import { t } from "../../strings.js";
import { dayText } from "./slider.js";
import { Sources } from "./sources.js";

/**
 * @typedef {import("../../types.js").Version} Version
 * @typedef {import("../../types.js").Memory} Memory
 */

/** @param {{ id: string, onClose: () => void, onChanged: () => void }} props */
export function Detail({ id, onClose, onChanged }) {
  const loaded = useLoaded(id, (abort) => /** @type {Promise<import("../../api.js").Result<{ data: Version[] }>>} */ (get(`/v1/memories/${part(id)}/history`, { abort })));
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return html`<section class="detail" aria-label=${t.facts.detail}>
    <header class="detail-head">
      <h2 tabIndex=${-1} ref=${heading}>${t.facts.detail}</h2>
      <${IconButton} icon="close" label=${t.close} onClick=${onClose} />
    </header>
    <div class="detail-body">
      <${Loaded} of=${loaded}>${/** @param {{ data: Version[] }} answer */ ({ data }) => {
        const version = data.find(({ memory }) => memory.id === id);
        return version && html`<${Shown} version=${version} all=${data} onChanged=${() => { loaded.reload(); onChanged(); }} onForgotten=${() => { onClose(); onChanged(); }} />`;
      }}<//>
    </div>
  </section>`;
}

/** @param {{ version: Version, all: Version[], onChanged: () => void, onForgotten: () => void }} props */
function Shown({ version, all, onChanged, onForgotten }) {
  const { memory, live, changes } = version;
  const confirmed = changes.at(-1)?.what === "confirmed" && memory.confidence === 1;
  const [asking, setAsking] = useState(false);
  return html`
    <div class="detail-badges"><${Badge} tone=${live ? "good" : ""}>${stateOf(version)}<//>
      ${confirmed && html`<${Badge} tone="good">${t.facts.confirmed}<//>`}
      <span class="quiet">${spanOf(version)}</span></div>
    <div class="content-text">${memory.content}</div>
    <p class="quiet fact-meta">${t.facts.confidence} ${memory.confidence.toFixed(2)}
      ${memory.user_id !== null && html` · <a class="mono" href=${address("facts", { who: `user:${memory.user_id}`, id: memory.id })}>user:${memory.user_id}</a>`}
      ${" "}<${Tags} tags=${memory.tags} /></p>
    <div class="actions">
      ${stateOf(version) === t.facts.holds && !past(version) && !confirmed && html`<${Button} small icon="check" onClick=${() => void confirm(memory, onChanged)}>${t.facts.confirm}<//>`}
      <${Button} small icon="restore" onClick=${() => void undo(memory, onChanged)}>${t.facts.undo}<//>
      <a href=${address("memories", { id: memory.id })}>${t.facts.memory}</a>
      <span class="spring" />
      <${Button} small kind="danger" icon="delete" onClick=${() => setAsking(true)}>${t.facts.forget}<//>
    </div>
    <h3>${t.facts.sources}</h3>
    <${Sources} memory=${memory} />
    <h3>${t.facts.history}</h3>
    <ol class="timeline">${[...all].reverse().map((one) => html`<${Step} key=${one.memory.id} version=${one} current=${one.memory.id === memory.id} />`)}</ol>
    ${asking && html`<${Confirm} title=${t.facts.forgetTitle} body=${t.facts.forgetBody} action=${t.facts.forget} onConfirm=${() => void forget(memory, onForgotten)} onClose=${() => setAsking(false)} />`}`;
}

/** @param {Version} version */
const past = ({ ends }) => ends !== null && Date.parse(ends) <= Date.now();

/** @param {Version} version */
const nowhere = ({ begins, ends }) => begins !== null && ends !== null && Date.parse(ends) <= Date.parse(begins);

/** @param {Version} version */
function stateOf(version) {
  if (version.live) return t.facts.holds;
  if (version.memory.archived_at !== null) return t.facts.archived;
  return nowhere(version) ? t.facts.none : t.facts.ended;
}

/** @param {Version} version */
function spanOf({ begins, ends }) {
  return begins === null ? "" : t.facts.from(dayText(Date.parse(begins)), ends === null ? null : dayText(Date.parse(ends)));
}

/** @param {{ version: Version, current: boolean }} props */
function Step({ version, current }) {
  const { memory, live, changes } = version;
  const ending = changes.find(({ why }) => why !== null && t.facts.why[why] !== undefined);
  const reason = ending && `${t.facts.why[ending.why ?? ""]}${ending.quote ? `: “${ending.quote}”` : ""}`;
  return html`<li class=${live ? "live" : ""}>
    <p>${current ? html`<strong>${memory.content}</strong>` : html`<a href=${addressWith({ id: memory.id })} onClick=${/** @param {MouseEvent} event */ (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      setQuery({ id: memory.id }, { replace: true });
    }}>${memory.content}</a>`}</p>
    <p class="quiet">${stateOf(version)} · ${spanOf(version)}${reason && !live && html` · ${t.facts.next} ${reason}`}</p>
  </li>`;
}

/** @param {Memory} memory @param {() => void} done */
async function confirm(memory, done) {
  const result = await post(`/v1/memories/${part(memory.id)}/confirm`, {});
  if (!result.ok) toast(result.error.message, { bad: true });
  else done();
}

/** @param {Memory} memory @param {() => void} done */
async function undo(memory, done) {
  /** @type {import("../../api.js").Result<{ undone: string | null }>} */
  const result = await post(`/v1/memories/${part(memory.id)}/undo`, {});
  if (!result.ok) toast(result.error.message, { bad: true });
  else {
    toast(result.data.undone === null ? t.facts.nothingToUndo : t.facts.undoneToast);
    done();
  }
}

/** @param {Memory} memory @param {() => void} done */
async function forget(memory, done) {
  const result = await post("/v1/memories/forget", { ids: [memory.id] });
  if (!result.ok) toast(result.error.message, { bad: true });
  else {
    toast(t.facts.forgottenToast);
    done();
  }
}
