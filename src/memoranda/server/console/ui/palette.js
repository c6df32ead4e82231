// The command palette: pages, what can be done, and memories, by the keyboard alone. Ctrl-K or Cmd-K opens it.
import { html, signal, useDebounced, useEffect, useId, useLoaded, useRef, useSignal, useState } from "./core.js";
import { post } from "../api.js";
import { addMemory, useWrites } from "./add_memory.js";
import { IconButton } from "./form.js";
import { Icon } from "./icons.js";
import { address, go } from "../router.js";
import { t } from "../strings.js";

/**
 * @typedef {{ key: string, icon: string, label: string, run: () => void }} Command
 * @typedef {{ path: string, title: string, icon: string }} Place
 */

const PAUSE = 180; // milliseconds without a key before memories are searched
const RESULTS = 6;
const SHORTCUT = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘ K" : "Ctrl K";
const open = signal(false);

/** The button that opens the palette, where there is room with its shortcut. @param {{ bare?: boolean }} props */
export function PaletteButton({ bare = false }) {
  const show = () => (open.value = true);
  if (bare) return html`<${IconButton} icon="search" label=${t.palette.title} onClick=${show} />`;
  return html`<button type="button" class="palette-button" aria-keyshortcuts="Control+K Meta+K" onClick=${show}><${Icon} name="search" /><span>${t.palette.button}</span><kbd aria-hidden="true">${SHORTCUT}</kbd></button>`;
}

/** @param {{ pages: Place[] }} props */
export function Palette({ pages }) {
  useEffect(() => {
    /** @param {KeyboardEvent} event */
    const listen = (event) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      if (open.peek() || !document.querySelector("dialog[open]")) open.value = !open.peek();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
  return useSignal(open) ? html`<${Opened} pages=${pages} />` : null;
}

/** @param {{ pages: Place[] }} props */
function Opened({ pages }) {
  const id = useId();
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const query = text.trim();
  const settled = useDebounced(query, PAUSE);
  /** @type {{ data: import("../types.js").SearchAnswer | null, error: import("../api.js").ApiError | null }} */
  const found = useLoaded(settled === "" ? null : settled, (abort) => post("/v1/memories/search", { query: settled, limit: RESULTS }, { abort }));
  const groups = useGroups(pages, query, settled === query ? found.data : null);
  const commands = groups.flatMap((group) => group.commands);
  const current = commands[Math.min(at, commands.length - 1)];
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      dialog.current?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  useEffect(() => document.getElementById(`${id}-${current?.key}`)?.scrollIntoView({ block: "nearest" }), [current?.key]);
  const close = () => (open.value = false);
  /** @param {Command | undefined} command */
  const run = (command) => {
    if (!command) return;
    dialog.current?.close(); // before another dialog opens, or another page takes the focus
    close();
    command.run();
  };
  /** @param {KeyboardEvent} event */
  const keyed = (event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.isComposing || (step === 0 && event.key !== "Enter")) return;
    event.preventDefault();
    if (step === 0) run(current);
    else setAt((Math.min(at, commands.length - 1) + step + commands.length) % commands.length);
  };
  return html`<dialog class="palette" ref=${dialog} aria-label=${t.palette.title} onCancel=${/** @param {Event} event */ (event) => { event.preventDefault(); close(); }}
    onClick=${/** @param {MouseEvent} event */ (event) => event.target === dialog.current && close()}>
    <div class="palette-field"><${Icon} name="search" />
      <input type="text" role="combobox" aria-expanded="true" aria-autocomplete="list" aria-label=${t.palette.title} aria-controls=${`${id}-list`} aria-activedescendant=${current ? `${id}-${current.key}` : null}
        autocomplete="off" spellcheck=${false} autofocus placeholder=${t.palette.hint} value=${text} onKeyDown=${keyed}
        onInput=${/** @param {InputEvent} event */ (event) => { setText(/** @type {HTMLInputElement} */ (event.currentTarget).value); setAt(0); }} />
      <${IconButton} icon="close" label=${t.close} onClick=${close} /></div>
    <div class="palette-list" role="listbox" id=${`${id}-list`} aria-label=${t.palette.commands}>
      ${groups.map(({ label, commands: own }) => own.length > 0 && html`<div key=${label} role="group" aria-label=${label}><div class="palette-group" aria-hidden="true">${label}</div>
        ${own.map((command) => html`<div key=${command.key} role="option" id=${`${id}-${command.key}`} class="palette-option" aria-selected=${String(command === current)} onClick=${() => run(command)} onMouseMove=${() => setAt(commands.indexOf(command))}>
          <${Icon} name=${command.icon} /><span>${command.label}</span></div>`)}</div>`)}
    </div>
    <p class="palette-foot" role="status">${found.error && found.error.kind !== "aborted" ? html`<span class="wrong">${found.error.message}</span>` : html`<span aria-hidden="true">${t.palette.keys}</span>`}</p>
  </dialog>`;
}

/**
 * What the palette lists for a text. Memories come last, so that nothing moves when they arrive.
 * @param {Place[]} pages
 * @param {string} query
 * @param {import("../types.js").SearchAnswer | null} found
 * @returns {{ label: string, commands: Command[] }[]}
 */
function useGroups(pages, query, found) {
  const writes = useWrites();
  const lower = query.toLowerCase();
  const p = t.palette;
  /** @type {Command[]} */
  const actions = [{ key: "search", icon: "search", label: query ? p.searchFor(query) : p.search, run: () => go(address("memories", { q: query })) }];
  if (writes) {
    actions.push({ key: "ask", icon: "ask", label: query ? p.askFor(query) : p.ask, run: () => go(address("ask", { q: query })) });
    actions.push({ key: "add", icon: "add", label: query ? p.addFor(query) : p.add, run: () => addMemory(query) });
  }
  const places = pages.filter(({ title }) => title.toLowerCase().includes(lower)).map(({ path, title, icon }) => ({ key: `page-${path}`, icon, label: title, run: () => go(address(path)) }));
  const memories = (found?.results ?? []).map(({ memory }, i) => ({ key: `memory-${i}`, icon: "memories", label: memory.content.slice(0, 200), run: () => go(address("memories", { id: memory.id })) }));
  const [first, second] = [{ label: p.pages, commands: places }, { label: p.actions, commands: actions }];
  return [...(query ? [first, second] : [second, first]), { label: t.nav.memories, commands: memories }];
}
