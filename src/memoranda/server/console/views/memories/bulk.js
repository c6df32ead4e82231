// What can be done with all memories that are selected.
import { html, useState } from "../../ui/core.js";
import { Button } from "../../ui/form.js";
import { Confirm } from "../../ui/dialog.js";
import { t } from "../../strings.js";
import { deleteAll, setArchived } from "./changes.js";

/** @typedef {import("../../types.js").Memory} Memory */

/**
 * @param {{ chosen: Map<string, Memory>, shown: import("./source.js").Row[], onChoose: (chosen: Map<string, Memory>) => void, onChanged: () => void }} props
 */
export function Bulk({ chosen, shown, onChoose, onChanged }) {
  const [asking, setAsking] = useState(false);
  const all = [...chosen.values()];
  const done = () => {
    onChoose(new Map());
    onChanged();
  };
  const archived = all.every((memory) => memory.archived_at !== null);
  return html`<div class="bulk" role="toolbar" aria-label=${t.memories.selected(chosen.size)}>
    <strong>${t.memories.selected(chosen.size)}</strong>
    <${Button} small kind="ghost" onClick=${() => onChoose(new Map(shown.map(({ memory }) => [memory.id, memory])))}>${t.memories.selectShown}<//>
    <${Button} small kind="ghost" onClick=${() => onChoose(new Map())}>${t.memories.clearSelection}<//>
    <span class="spring" />
    <${Button} small icon=${archived ? "restore" : "archive"} onClick=${() => setArchived(all, !archived, done)}>${archived ? t.memories.restore : t.memories.archive}<//>
    <${Button} small kind="danger" icon="delete" onClick=${() => setAsking(true)}>${t.memories.delete}<//>
    ${asking && html`<${Confirm} title=${t.memories.deleteTitle(chosen.size)} body=${t.memories.deleteBody} action=${t.memories.delete}
      onConfirm=${() => deleteAll(all, done)} onClose=${() => setAsking(false)} />`}
  </div>`;
}
