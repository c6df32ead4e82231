// A configuration of an evaluation: its settings, their place in the address, and the form that chooses them.
import { html } from "../../ui/core.js";
import { Input, Select } from "../../ui/form.js";
import { t } from "../../strings.js";

/** @typedef {Record<string, string>} Settings by name; what is missing is the configured value */

/** The empty value is the configured one; of the mode, which is not configured, it is the default. @type {Record<string, string[]>} */
const VALUES = {
  mode: ["", "dense", "keyword"],
  rerank: ["", "auto", "people", "assistant", "plain", "sessions", "off"],
  recency: ["", "off", "decay", "boost"],
  times: ["", "true", "false"],
  enrich: ["", "true", "false"],
};
const WEIGHT = "dense_weight";

/** The settings in a parameter of the address, such as `mode:keyword,rerank:off`. @param {string | null} text @returns {Settings} */
export function settingsOf(text) {
  const pairs = (text ?? "").split(",").map((pair) => /** @type {[string, string]} */ (pair.split(":", 2)));
  return Object.fromEntries(pairs.filter(([name, value]) => name === WEIGHT ? weightOf(value ?? "") !== null : Object.hasOwn(VALUES, name) && VALUES[name]?.includes(value)));
}

/** @param {Settings} settings */
export const settingsText = (settings) => Object.entries(settings).filter(([, value]) => value !== "").map(([name, value]) => `${name}:${value}`).join(",");

/** The configuration as the API takes it. @param {string} name @param {Settings} settings @returns {Record<string, unknown>} */
export function configurationOf(name, settings) {
  /** @type {Record<string, unknown>} */
  const body = { name };
  for (const [key, value] of Object.entries(settings)) {
    if (value === "") continue;
    body[key] = key === WEIGHT ? weightOf(value) : value === "true" ? true : value === "false" ? false : value;
  }
  return body;
}

/** @param {string} text */
function weightOf(text) {
  const weight = Number(text);
  return text.trim() !== "" && weight >= 0 && weight <= 1 ? weight : null;
}

/** What differs from the configured values, in words. @param {Settings} settings */
export function described(settings) {
  const parts = Object.entries(settings).filter(([, value]) => value !== "").map(([name, value]) => `${t.evaluation.settings[name] ?? name}: ${t.evaluation.values[value] ?? value}`);
  return parts.length ? parts.join(", ") : t.evaluation.configured;
}

/** @param {{ name: string, settings: Settings, onChange: (settings: Settings) => void }} props */
export function SettingsForm({ name, settings, onChange }) {
  /** @param {string} key @param {string} value */
  const set = (key, value) => onChange({ ...settings, [key]: value });
  return html`<fieldset class="configuration">
    <legend>${t.evaluation.configuration(name)}</legend>
    ${Object.entries(VALUES).map(([key, values]) => html`<${Select} key=${key} label=${t.evaluation.settings[key]} value=${settings[key] ?? ""} onChange=${/** @param {string} value */ (value) => set(key, value)}
      options=${values.map((value) => ({ value, label: value === "" && key === "mode" ? t.evaluation.hybrid : t.evaluation.values[value] ?? value }))} />`)}
    <${Input} label=${t.evaluation.settings.dense_weight} type="number" min=${0} max=${1} step="any" placeholder=${t.evaluation.asConfigured} value=${settings[WEIGHT] ?? ""}
      onInput=${/** @param {string} value */ (value) => set(WEIGHT, value)} />
  </fieldset>`;
}
