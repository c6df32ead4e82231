// The field for a question, and what goes with it.
import { html, useState } from "../../ui/core.js";
import { Button, Input, Select, Switch, TextArea } from "../../ui/form.js";
import { StoreChoice } from "../../ui/store_choice.js";
import { setQuery } from "../../router.js";
import { t } from "../../strings.js";

/**
 * @param {{ query: URLSearchParams, busy: boolean, stores?: boolean, models?: string[], onAsk: (question: string) => void, onStop?: () => void }} props
 * Without `onStop` a question cannot be stopped.
 */
export function Composer({ query, busy, stores = false, models = [], onAsk, onStop }) {
  const [text, setText] = useState(query.get("q") ?? "");
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
  return html`<form class="composer" onSubmit=${submit}>
    <div class="composer-line">
      <${TextArea} label=${t.ask.question} bare rows=${2} value=${text} onInput=${setText} placeholder=${t.ask.questionHint} onKeyDown=${keyed} />
      ${busy && onStop ? html`<${Button} icon="stop" onClick=${onStop}>${t.ask.stop}<//>`
        : html`<${Button} type="submit" kind="primary" icon="send" busy=${busy} disabled=${text.trim() === ""}>${t.ask.submit}<//>`}
    </div>
    <div class="composer-options">
      ${stores && html`<${StoreChoice} chosen=${query.getAll("store")} onChange=${/** @param {string[]} ids */ (ids) => setQuery({ store: ids })} />`}
      <span class="spring" />
      ${stores && html`<${Input} bare label=${t.ask.user} value=${query.get("user") ?? ""} placeholder=${t.ask.userHint} onInput=${/** @param {string} id */ (id) => setQuery({ user: id || null })} />`}
      <${Switch} label=${t.ask.memory} checked=${query.get("memory") !== "off"} onChange=${/** @param {boolean} on */ (on) => setQuery({ memory: on ? null : "off" })} />
      <${Switch} label=${t.ask.history} checked=${query.get("history") !== "off"} onChange=${/** @param {boolean} on */ (on) => setQuery({ history: on ? null : "off" })} />
      ${models.length > 1 && html`<${Select} bare label=${t.ask.model} value=${query.get("model") ?? models[0] ?? ""} options=${models.map((id) => ({ value: id, label: id }))} onChange=${/** @param {string} id */ (id) => setQuery({ model: id })} />`}
    </div>
  </form>`;
}
