// The form that changes a memory.
import { html, useState } from "../../ui/core.js";
import { patch, part } from "../../api.js";
import { Button, Chips, Input, TextArea } from "../../ui/form.js";
import { toast } from "../../ui/toast.js";
import { t } from "../../strings.js";

/** @typedef {import("../../types.js").Memory} Memory */

/** @param {{ memory: Memory, onClose: () => void, onSaved: (memory: Memory) => void }} props */
export function Editor({ memory, onClose, onSaved }) {
  const [content, setContent] = useState(memory.content);
  const [tags, setTags] = useState(memory.tags);
  const [source, setSource] = useState(memory.source ?? "");
  const [importance, setImportance] = useState(String(memory.importance));
  const [confidence, setConfidence] = useState(String(memory.confidence));
  const [metadata, setMetadata] = useState(JSON.stringify(memory.metadata, null, 2));
  const [wrong, setWrong] = useState(/** @type {Record<string, string>} */ ({}));
  const [busy, setBusy] = useState(false);

  /** @param {Event} event */
  const save = async (event) => {
    event.preventDefault();
    const parsed = objectOf(metadata);
    if (parsed === null) {
      setWrong({ metadata: t.memories.metadataWrong });
      return;
    }
    /** @type {Record<string, unknown>} */
    const all = { content, tags, source: source || null, importance: Number(importance), confidence: Number(confidence), metadata: parsed };
    /** @type {Record<string, unknown>} */
    const now = { ...memory };
    const changes = Object.fromEntries(Object.entries(all).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(now[name])));
    setBusy(true);
    /** @type {import("../../api.js").Result<Memory>} */
    const result = await patch(`/v1/memories/${part(memory.id)}`, changes);
    setBusy(false);
    if (!result.ok) {
      setWrong({ [result.error.param ?? "content"]: result.error.message });
      return;
    }
    toast(t.memories.savedToast);
    onSaved(result.data);
    onClose();
  };
  return html`<form class="editor" onSubmit=${save}>
    <${TextArea} label=${t.memories.content} value=${content} onInput=${setContent} rows=${6} wrong=${wrong.content} />
    <${Chips} label=${t.memories.tags} values=${tags} onChange=${setTags} placeholder=${t.memories.tagsHint} />
    <${Input} label=${t.memories.source} value=${source} onInput=${setSource} wrong=${wrong.source} />
    <div class="two">
      <${Input} label=${t.memories.importance} type="number" step=${1} value=${importance} onInput=${setImportance} wrong=${wrong.importance} />
      <${Input} label=${t.memories.confidence} type="number" min=${0} max=${1} step=${0.01} value=${confidence} onInput=${setConfidence} wrong=${wrong.confidence} />
    </div>
    <${TextArea} label=${t.memories.metadata} value=${metadata} onInput=${setMetadata} rows=${5} mono wrong=${wrong.metadata} />
    ${Object.entries(wrong).filter(([name]) => !["content", "source", "importance", "confidence", "metadata"].includes(name)).map(([name, says]) => html`<p class="wrong" role="alert" key=${name}>${says}</p>`)}
    <div class="actions"><span class="spring" />
      <${Button} onClick=${onClose}>${t.cancel}<//>
      <${Button} type="submit" kind="primary" busy=${busy} disabled=${content.trim() === ""}>${t.save}<//>
    </div>
  </form>`;
}

/** @param {string} text @returns {Record<string, unknown> | null} */
function objectOf(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null; // the field says what is wrong
  }
}
