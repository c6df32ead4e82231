// Changes limits of a tenant: what is typed is shown once more before it is sent.
import { html, useState } from "../../ui/core.js";
import { post } from "../../api.js";
import { Dialog } from "../../ui/dialog.js";
import { Button, Input } from "../../ui/form.js";
import { t } from "../../strings.js";

/** @typedef {Record<string, number | null>} Values */

/**
 * An empty field goes back to the configured default.
 * @param {{ title: string, path: string, tenant: string, names: Record<string, string>, values: Values, unset: string, onClose: () => void, onSaved: () => void }} props
 */
export function LimitsDialog({ title, path, tenant, names, values, unset, onClose, onSaved }) {
  const [texts, setTexts] = useState(/** @type {Record<string, string>} */ (Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value === null ? "" : String(value)]))));
  const [sure, setSure] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {import("../../api.js").ApiError | null} */ (null));
  const changes = changesOf(values, texts);
  const changed = Object.entries(changes);
  /** @param {Event} [event] */
  const next = (event) => {
    event?.preventDefault();
    if (changed.length > 0) setSure(true);
  };
  const save = async () => {
    setBusy(true);
    const result = await post(path, { ...changes, tenant });
    setBusy(false);
    if (result.ok) {
      onClose();
      onSaved();
    } else {
      setError(result.error);
      setSure(false);
    }
  };
  const actions = sure
    ? html`<${Button} onClick=${() => setSure(false)}>${t.admin.back}<//><${Button} kind="primary" busy=${busy} onClick=${save}>${t.admin.confirm}<//>`
    : html`<${Button} onClick=${onClose}>${t.cancel}<//><${Button} kind="primary" disabled=${changed.length === 0} onClick=${next}>${t.admin.review}<//>`;
  return html`<${Dialog} title=${title} onClose=${onClose} actions=${actions}>
    ${sure ? html`<p>${t.admin.reviewLead(tenant)}</p><dl class="facts-list">${changed.map(([name, value]) => html`<div key=${name}><dt>${names[name] ?? name}</dt>
        <dd><span class="quiet">${told(values[name] ?? null, unset)} →</span> <strong>${told(value, unset)}</strong></dd></div>`)}</dl>`
      : html`<form class="editor" onSubmit=${next}>
        <p class="quiet">${t.admin.emptyIsDefault}</p>
        ${Object.keys(values).map((name) => html`<${Input} key=${name} label=${names[name] ?? name} value=${texts[name] ?? ""} placeholder=${unset} onInput=${/** @param {string} text */ (text) => setTexts({ ...texts, [name]: text })}
          wrong=${error?.param === name ? error.message : null} />`)}
        ${error && !(error.param !== null && error.param in values) && html`<p class="wrong" role="alert">${error.message}</p>`}
        <button type="submit" hidden />
      </form>`}
  <//>`;
}

/** What differs; what is no number is sent as it is, so that the server says what is wrong. @param {Values} values @param {Record<string, string>} texts @returns {Record<string, unknown>} */
function changesOf(values, texts) {
  /** @type {Record<string, unknown>} */
  const changes = {};
  for (const [name, before] of Object.entries(values)) {
    const text = (texts[name] ?? "").trim();
    const after = text === "" ? null : /^-?\d+$/.test(text) ? Number(text) : text;
    if (after !== before) changes[name] = after;
  }
  return changes;
}

/** @param {unknown} value @param {string} unset */
const told = (value, unset) => (value === null ? unset : typeof value === "number" ? t.number(value) : String(value));
