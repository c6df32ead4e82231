// The field for a question, and what goes with it.
import { html, useEffect, useLoaded, useSignal, useState } from "../../ui/core.js";
import { facetsOf } from "../../ui/facets.js";
import { Button, Input, Select, Switch, TextArea } from "../../ui/form.js";
import { StoreChoice } from "../../ui/store_choice.js";
import { setQuery } from "../../router.js";
import { session } from "../../session.js";
import { t } from "../../strings.js";

/**
 * @param {{ query: URLSearchParams, busy: boolean, stores?: boolean, models?: string[], indexing?: number, onAsk: (question: string) => void, onStop?: () => void }} props
 * Without `onStop` a question cannot be stopped. `indexing` is the number of documents that an answer would not have yet.
 */
export function Composer({ query, busy, stores = false, models = [], indexing = 0, onAsk, onStop }) {
  const given = query.get("q");
  const [text, setText] = useState(given ?? "");
  useEffect(() => {
    if (given !== null) setText(given);
  }, [given]);
  /** @param {Event} [event] */
  const submit = (event) => {
    event?.preventDefault();
    if (text.trim() === "" || busy) return;
    onAsk(text.trim());
    setText("");
  };
  /** @param {KeyboardEvent} event */
  const keyed = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    submit(event);
  };
  const memory = query.get("memory") !== "off";
  return html`<form class="composer" onSubmit=${submit}>
    ${stores && html`<div class="composer-over">
      ${memory && html`<${UserField} user=${query.get("user") ?? ""} />`}
      <${StoreChoice} chosen=${query.getAll("store")} onChange=${/** @param {string[]} ids */ (ids) => setQuery({ store: ids })} />
    </div>`}
    ${indexing > 0 && html`<p class="pending" role="status">${t.ask.indexing(indexing)}</p>`}
    <div class="composer-line">
      <${TextArea} label=${t.ask.question} bare rows=${2} value=${text} onInput=${setText} placeholder=${t.ask.questionHint} onKeyDown=${keyed} />
      ${busy && onStop ? html`<${Button} icon="stop" onClick=${onStop}>${t.ask.stop}<//>`
        : html`<${Button} type="submit" kind="primary" icon="send" busy=${busy} disabled=${text.trim() === ""}>${t.ask.submit}<//>`}
    </div>
    <div class="composer-options">
      <${Switch} label=${t.ask.memory} checked=${memory} onChange=${/** @param {boolean} on */ (on) => setQuery({ memory: on ? null : "off" })} />
      <${Switch} label=${t.ask.history} checked=${query.get("history") !== "off"} onChange=${/** @param {boolean} on */ (on) => setQuery({ history: on ? null : "off" })} />
      ${models.length > 1 && html`<${Select} bare label=${t.ask.model} value=${query.get("model") ?? models[0] ?? ""} options=${models.map((id) => ({ value: id, label: id }))} onChange=${/** @param {string} id */ (id) => setQuery({ model: id })} />`}
    </div>
  </form>`;
}

/** Whose memories are used. A key that is bound to a user asks for this user. @param {{ user: string }} props */
function UserField({ user }) {
  const bound = useSignal(session)?.user ?? null;
  const known = useLoaded(bound === null ? "users" : null, (abort) => facetsOf({}, abort)).data;
  if (bound !== null) return null;
  const users = (known?.scopes ?? []).filter(({ value }) => value.startsWith("user:")).map(({ value }) => ({ value: value.slice("user:".length) }));
  return html`<div class="composer-user"><${Input} label=${t.ask.user} value=${user} placeholder=${t.ask.userHint} list=${users} onInput=${/** @param {string} id */ (id) => setQuery({ user: id || null })} /></div>`;
}
