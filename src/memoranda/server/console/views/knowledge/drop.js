// Where files come from: dropped files and folders, and the pickers of the browser.
import { html, useEffect, useRef, useState } from "../../ui/core.js";
import { Button } from "../../ui/form.js";
import { t } from "../../strings.js";

/** @typedef {{ file: File, path: string }} Found */

/**
 * A page onto which files can be dropped.
 * @param {{ onFiles: (files: Found[]) => void, className: string, children: import("../../vendor/htm-preact.js").Child }} props
 */
export function DropTarget({ onFiles, className, children }) {
  const [over, setOver] = useState(0); // entered elements: one that is left counts down
  /** @param {DragEvent} event */
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files") ?? false;
  /** @param {DragEvent} event */
  const drop = async (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    setOver(0);
    onFiles(await dropped(/** @type {DataTransfer} */ (event.dataTransfer)));
  };
  return html`<div class=${`${className} ${over > 0 ? "dropping" : ""}`} onDrop=${drop}
    onDragEnter=${/** @param {DragEvent} event */ (event) => { if (holdsFiles(event)) { event.preventDefault(); setOver((n) => n + 1); } }}
    onDragLeave=${/** @param {DragEvent} event */ (event) => holdsFiles(event) && setOver((n) => Math.max(0, n - 1))}
    onDragOver=${/** @param {DragEvent} event */ (event) => holdsFiles(event) && event.preventDefault()}>
    ${children}
    ${over > 0 && html`<div class="drop-veil" aria-hidden="true"><span>${t.knowledge.drop}</span></div>`}
  </div>`;
}

/** Buttons that open the browser's pickers. @param {{ onFiles: (files: Found[]) => void, small?: boolean }} props */
export function Pickers({ onFiles, small = false }) {
  const files = useRef(/** @type {HTMLInputElement | null} */ (null));
  const folder = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => folder.current?.setAttribute("webkitdirectory", ""), []);
  /** @param {Event} event */
  const chosen = (event) => {
    const input = /** @type {HTMLInputElement} */ (event.currentTarget);
    onFiles([...(input.files ?? [])].map((file) => ({ file, path: file.webkitRelativePath })));
    input.value = "";
  };
  return html`
    <input type="file" multiple hidden ref=${files} aria-label=${t.knowledge.upload} onChange=${chosen} />
    <input type="file" multiple hidden ref=${folder} aria-label=${t.knowledge.uploadFolder} onChange=${chosen} />
    <${Button} kind="primary" icon="upload" small=${small} onClick=${() => files.current?.click()}>${t.knowledge.upload}<//>
    <span class="folder-picker"><${Button} icon="folder" small=${small} onClick=${() => folder.current?.click()}>${t.knowledge.uploadFolder}<//></span>`;
}

/**
 * The files of a drop, those below folders included. What the browser keeps for itself (.DS_Store and the like) is left out.
 * @param {DataTransfer} transfer
 * @returns {Promise<Found[]>}
 */
async function dropped(transfer) {
  const items = [...transfer.items].filter((item) => item.kind === "file"); // entries are gone after the first await
  const entries = items.map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  /** @type {Found[]} */
  const found = [];
  for (const { entry, file } of entries) {
    if (entry?.isDirectory) await walk(/** @type {FileSystemDirectoryEntry} */ (entry), found);
    else if (file) found.push({ file, path: "" });
  }
  return found.filter((one) => !one.file.name.startsWith("."));
}

/** @param {FileSystemDirectoryEntry} folder @param {Found[]} found */
async function walk(folder, found) {
  const reader = folder.createReader();
  /** @returns {Promise<FileSystemEntry[]>} */
  const next = () => new Promise((resolve, reject) => reader.readEntries(resolve, reject));
  for (let entries = await next(); entries.length > 0; entries = await next()) { // it gives a hundred at a time
    for (const entry of entries) {
      if (entry.isDirectory) await walk(/** @type {FileSystemDirectoryEntry} */ (entry), found);
      else {
        const file = await new Promise((/** @type {(file: File) => void} */ resolve, reject) => /** @type {FileSystemFileEntry} */ (entry).file(resolve, reject));
        found.push({ file, path: entry.fullPath.replace(/^\//, "") });
      }
    }
  }
}
