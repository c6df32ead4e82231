// Modal dialogs. The browser keeps the focus inside and gives it back.
import { html, useEffect, useId, useRef } from "./core.js";
import { Button, IconButton } from "./form.js";
import { t } from "../strings.js";

/** @typedef {import("../vendor/htm-preact.js").Child} Child */

/** @param {{ title: string, onClose: () => void, children?: Child, actions?: Child }} props */
export function Dialog({ title, onClose, children, actions }) {
  const id = useId();
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const opened = dialog.current;
    const before = document.activeElement;
    opened?.showModal();
    return () => {
      opened?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  /** @param {Event} event */
  const cancelled = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${dialog} aria-labelledby=${id} onCancel=${cancelled}
    onClick=${/** @param {MouseEvent} event */ (event) => event.target === dialog.current && onClose()}>
    <div class="dialog-body">
      <header><h2 id=${id}>${title}</h2><${IconButton} icon="close" label=${t.close} onClick=${onClose} /></header>
      <div>${children}</div>
      <footer>${actions}</footer>
    </div>
  </dialog>`;
}

/** Asks before something that cannot be undone, or that costs something. @param {{ title: string, body: string, action: string, kind?: "danger" | "primary", onConfirm: () => void, onClose: () => void }} props */
export function Confirm({ title, body, action, kind = "danger", onConfirm, onClose }) {
  return html`<${Dialog} title=${title} onClose=${onClose} actions=${html`
    <${Button} onClick=${onClose}>${t.cancel}<//>
    <${Button} kind=${kind} onClick=${() => { onClose(); onConfirm(); }}>${action}<//>`}>
    <p>${body}</p>
  <//>`;
}
