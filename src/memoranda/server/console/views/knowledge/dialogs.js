// Dialogs that change a store: its name, and files that leave it.
import { html, useState } from "../../ui/core.js";
import { part, post, remove } from "../../api.js";
import { Button, Input, Switch } from "../../ui/form.js";
import { Dialog } from "../../ui/dialog.js";
import { toast } from "../../ui/toast.js";
import { t } from "../../strings.js";

/**
 * @typedef {import("../../types.js").VectorStore} VectorStore
 * @typedef {import("../../types.js").StoreFile} StoreFile
 */

/** Creates a store, or renames the one that is given. @param {{ store?: VectorStore, onClose: () => void, onSaved: (store: VectorStore) => void }} props */
export function NameDialog({ store, onClose, onSaved }) {
  const [name, setName] = useState(store?.name ?? "");
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState(/** @type {string | null} */ (null));
  /** @param {Event} [event] */
  const save = async (event) => {
    event?.preventDefault();
    if (name.trim() === "" || busy) return;
    setBusy(true);
    /** @type {import("../../api.js").Result<VectorStore>} */
    const result = await post(store ? `/v1/vector_stores/${part(store.id)}` : "/v1/vector_stores", { name: name.trim() });
    setBusy(false);
    if (!result.ok) setWrong(result.error.message);
    else {
      onClose();
      onSaved(result.data);
    }
  };
  return html`<${Dialog} title=${store ? t.knowledge.rename : t.knowledge.create} onClose=${onClose} actions=${html`
    <${Button} onClick=${onClose}>${t.cancel}<//>
    <${Button} kind="primary" busy=${busy} disabled=${name.trim() === ""} onClick=${save}>${store ? t.save : t.knowledge.create}<//>`}>
    <form onSubmit=${save}><${Input} label=${t.knowledge.name} value=${name} onInput=${setName} wrong=${wrong} autofocus /></form>
  <//>`;
}

/** Takes a file out of a store; with the switch, deletes it everywhere. @param {{ file: StoreFile, onClose: () => void, onRemoved: () => void }} props */
export function RemoveDialog({ file, onClose, onRemoved }) {
  const [everywhere, setEverywhere] = useState(true);
  const take = async () => {
    onClose();
    const path = everywhere ? `/v1/files/${part(file.id)}` : `/v1/vector_stores/${part(file.vector_store_id)}/files/${part(file.id)}`;
    const result = await remove(path);
    if (!result.ok) toast(result.error.message, { bad: true });
    else {
      toast(t.knowledge.removedToast(file.filename));
      onRemoved();
    }
  };
  return html`<${Dialog} title=${t.knowledge.removeTitle} onClose=${onClose} actions=${html`
    <${Button} onClick=${onClose}>${t.cancel}<//>
    <${Button} kind="danger" onClick=${take}>${everywhere ? t.knowledge.delete : t.remove}<//>`}>
    <p class="id"><strong>${file.filename}</strong></p>
    <p>${everywhere ? t.knowledge.removeEverywhere : t.knowledge.removeHere}</p>
    <${Switch} label=${t.knowledge.everywhere} checked=${everywhere} onChange=${setEverywhere} />
  <//>`;
}

/** Attaches a file again that failed. @param {StoreFile} file @returns {Promise<void>} */
export async function attachAgain(file) {
  const body = { file_id: file.id, attributes: file.attributes };
  const result = await post(`/v1/vector_stores/${part(file.vector_store_id)}/files`, body);
  if (!result.ok) toast(result.error.message, { bad: true });
}
