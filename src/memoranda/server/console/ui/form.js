// Buttons and form controls. Each control has a visible label, or `label` with `bare` for screen readers only.
import { html, useId, useState } from "./core.js";
import { Icon } from "./icons.js";
import { t } from "../strings.js";

/**
 * @typedef {import("../vendor/htm-preact.js").Child} Child
 * @typedef {{ value: string, label?: string }} Choice
 */

/**
 * A button. `inactive` is `disabled` for one that its own click turns off: it keeps the keyboard's focus.
 * @param {{ children?: Child, onClick?: (event: MouseEvent) => void, kind?: "" | "primary" | "danger" | "ghost", icon?: string, type?: "button" | "submit", disabled?: boolean, inactive?: boolean, busy?: boolean, small?: boolean }} props
 */
export function Button({ children, onClick, kind = "", icon, type = "button", disabled = false, inactive = false, busy = false, small = false }) {
  return html`<button type=${type} class=${`button ${kind} ${small ? "small" : ""}`} disabled=${disabled || busy} aria-disabled=${inactive ? "true" : null} aria-busy=${busy} onClick=${inactive ? undefined : onClick}>
    ${icon && html`<${Icon} name=${icon} />`}${children}
  </button>`;
}

/** @param {{ icon: string, label: string, onClick?: (event: MouseEvent) => void, pressed?: boolean, expanded?: boolean, disabled?: boolean }} props */
export function IconButton({ icon, label, onClick, pressed, expanded, disabled = false }) {
  return html`<button type="button" class="icon-button" aria-label=${label} title=${label} disabled=${disabled}
    aria-pressed=${pressed === undefined ? null : String(pressed)} aria-expanded=${expanded === undefined ? null : String(expanded)} onClick=${onClick}>
    <${Icon} name=${icon} />
  </button>`;
}

/** @param {{ label: string, id: string, hint?: string | null, wrong?: string | null, bare?: boolean, children?: Child }} props */
export function Field({ label, id, hint, wrong, bare = false, children }) {
  return html`<div class="field">
    <label for=${id} class=${bare ? "hidden" : ""}>${label}</label>
    ${children}
    ${hint && html`<p class="hint">${hint}</p>`}
    ${wrong && html`<p class="wrong" id=${`${id}-wrong`} role="alert">${wrong}</p>`}
  </div>`;
}

/**
 * One line of text. `onInput` is called with each change.
 * @param {{ label: string, value: string, onInput: (value: string) => void, type?: string, placeholder?: string, wrong?: string | null, bare?: boolean, mono?: boolean, list?: Choice[], min?: number, max?: number, step?: number, autofocus?: boolean, autocomplete?: string, required?: boolean, onKeyDown?: (event: KeyboardEvent) => void }} props
 */
export function Input({ label, value, onInput, type = "text", placeholder, wrong, bare, mono = false, list, min, max, step, autofocus = false, autocomplete = "off", required = false, onKeyDown }) {
  const id = useId();
  return html`<${Field} label=${label} id=${id} wrong=${wrong} bare=${bare}>
    <input id=${id} class=${mono ? "mono" : ""} type=${type} value=${value} placeholder=${placeholder} autocomplete=${autocomplete} spellcheck=${false}
      min=${min} max=${max} step=${step} required=${required} autofocus=${autofocus} list=${list ? `${id}-list` : null}
      aria-invalid=${wrong ? "true" : null} aria-describedby=${wrong ? `${id}-wrong` : null} onKeyDown=${onKeyDown}
      onInput=${/** @param {InputEvent} event */ (event) => onInput(/** @type {HTMLInputElement} */ (event.currentTarget).value)} />
    ${list && html`<${Choices} id=${`${id}-list`} list=${list} />`}
  <//>`;
}

/** What a field suggests. @param {{ id: string, list: Choice[] }} props */
function Choices({ id, list }) {
  return html`<datalist id=${id}>${list.map(({ value, label }) => html`<option key=${value} value=${value} label=${label} />`)}</datalist>`;
}

/** @param {{ label: string, value: string, onInput: (value: string) => void, rows?: number, placeholder?: string, wrong?: string | null, mono?: boolean, bare?: boolean, autofocus?: boolean, onKeyDown?: (event: KeyboardEvent) => void }} props */
export function TextArea({ label, value, onInput, rows = 4, placeholder, wrong, mono = false, bare, autofocus = false, onKeyDown }) {
  const id = useId();
  return html`<${Field} label=${label} id=${id} wrong=${wrong} bare=${bare}>
    <textarea id=${id} class=${mono ? "mono" : ""} rows=${rows} placeholder=${placeholder} spellcheck=${!mono} autofocus=${autofocus} value=${value} onKeyDown=${onKeyDown}
      aria-invalid=${wrong ? "true" : null} aria-describedby=${wrong ? `${id}-wrong` : null}
      onInput=${/** @param {InputEvent} event */ (event) => onInput(/** @type {HTMLTextAreaElement} */ (event.currentTarget).value)} />
  <//>`;
}

/** @param {{ label: string, value: string, onChange: (value: string) => void, options: { value: string, label: string }[], bare?: boolean }} props */
export function Select({ label, value, onChange, options, bare }) {
  const id = useId();
  return html`<${Field} label=${label} id=${id} bare=${bare}>
    <select id=${id} value=${value} onChange=${/** @param {Event} event */ (event) => onChange(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}>
      ${options.map((one) => html`<option key=${one.value} value=${one.value}>${one.label}</option>`)}
    </select>
  <//>`;
}

/** @param {{ label: string, checked: boolean, onChange: (checked: boolean) => void }} props */
export function Switch({ label, checked, onChange }) {
  return html`<label class="switch">
    <input type="checkbox" role="switch" checked=${checked} onChange=${/** @param {Event} event */ (event) => onChange(/** @type {HTMLInputElement} */ (event.currentTarget).checked)} />
    <span>${label}</span>
  </label>`;
}

/** @param {{ label: string, checked: boolean, onChange: (checked: boolean) => void, tabIndex?: number }} props */
export function Checkbox({ label, checked, onChange, tabIndex }) {
  return html`<input type="checkbox" class="checkbox" aria-label=${label} checked=${checked} tabIndex=${tabIndex}
    onChange=${/** @param {Event} event */ (event) => onChange(/** @type {HTMLInputElement} */ (event.currentTarget).checked)} />`;
}

/**
 * A list of short texts: Enter or a comma adds one, Backspace in the empty field removes the last.
 * @param {{ label: string, values: string[], onChange: (values: string[]) => void, placeholder?: string, list?: Choice[] }} props
 */
export function Chips({ label, values, onChange, placeholder, list = [] }) {
  const id = useId();
  const [text, setText] = useState("");
  const add = () => {
    const value = text.trim();
    setText("");
    if (value && !values.includes(value)) onChange([...values, value]);
  };
  /** @param {KeyboardEvent} event */
  const keyed = (event) => {
    if ((event.key === "Enter" || event.key === ",") && text.trim()) {
      event.preventDefault();
      add();
    } else if (event.key === "Backspace" && !text && values.length) onChange(values.slice(0, -1));
  };
  return html`<${Field} label=${label} id=${id}>
    <div class="chips">
      ${values.map((value) => html`<span class="chip" key=${value}><span class="chip-text">${value}</span>
        <button type="button" aria-label=${`${t.remove} ${value}`} onClick=${() => onChange(values.filter((one) => one !== value))}><${Icon} name="close" /></button>
      </span>`)}
      <input id=${id} value=${text} placeholder=${values.length ? "" : placeholder} list=${`${id}-list`} autocomplete="off" spellcheck=${false} onKeyDown=${keyed} onBlur=${add}
        onInput=${/** @param {InputEvent} event */ (event) => setText(/** @type {HTMLInputElement} */ (event.currentTarget).value)} />
      <${Choices} id=${`${id}-list`} list=${list} />
    </div>
  <//>`;
}

/**
 * Copies a text.
 * @param {{ text: string, label?: string }} props
 */
export function Copy({ text, label = t.copy }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<${Button} small kind="ghost" onClick=${copy}>${done ? t.copied : label}<//>`;
}
