// The dialog that adds a memory; the shell shows it over any page.
import { html, signal, useLoaded, useRef, useSignal, useState } from "./core.js";
import { post } from "../api.js";
import { Dialog } from "./dialog.js";
import { facetsOf } from "./facets.js";
import { Button, Chips, Input, Select, TextArea } from "./form.js";
import { toast } from "./toast.js";
import { address, go } from "../router.js";
import { session } from "../session.js";
import { t } from "../strings.js";

/** @typedef {"everybody" | "user" | "channel" | "session"} Whose */

/** The text that the dialog begins with; null while it is closed. */
const begun = signal(/** @type {string | null} */ (null));
/** Grows when the console has added memories: pages load again what they show. */
export const memoriesAdded = signal(0);

/** Opens the dialog. @param {string} [text] */
export const addMemory = (text = "") => (begun.value = text);

/** Whether the key may store anything. */
export const useWrites = () => useSignal(session)?.role !== "reader";

/** A button that opens the dialog; nothing for keys that only read. @param {{ kind?: "" | "primary", small?: boolean }} props */
export function AddMemoryButton({ kind = "", small = false }) {
  return useWrites() ? html`<${Button} kind=${kind} small=${small} icon="add" onClick=${() => addMemory()}>${t.addMemory.title}<//>` : null;
}

export function AddMemoryDialog() {
  const text = useSignal(begun);
  return text === null ? null : html`<${Form} text=${text} onClose=${() => (begun.value = null)} />`;
}

/** @param {{ text: string, onClose: () => void }} props */
function Form({ text, onClose }) {
  const own = session.peek()?.user ?? ""; // the user that the key is bound to
  const [content, setContent] = useState(text);
  const [kind, setKind] = useState("note");
  const [whose, setWhose] = useState(/** @type {Whose} */ (own ? "user" : "everybody"));
  const [id, setId] = useState("");
  const [tags, setTags] = useState(/** @type {string[]} */ ([]));
  const [when, setWhen] = useState("");
  const [wrong, setWrong] = useState(/** @type {Record<string, string>} */ ({}));
  const [busy, setBusy] = useState(false);
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const known = useLoaded("facets", (abort) => facetsOf({}, abort)).data;
  const ids = (known?.scopes ?? []).filter(({ value }) => value.startsWith(`${whose}:`)).map(({ value }) => ({ value: value.slice(whose.length + 1) }));
  const named = whose !== "everybody" && !(whose === "user" && own);
  const complete = content.trim() !== "" && (!named || id.trim() !== "");
  /** @param {Event} [event] */
  const save = async (event) => {
    event?.preventDefault();
    if (!complete || busy) return;
    setBusy(true);
    const body = {
      content: content.trim(), kind, tags, ...(when ? { occurred_at: new Date(when).toISOString() } : {}),
      ...(named ? { [`${whose}_id`]: id.trim() } : {}), ...(whose === "everybody" && own ? { user_id: null } : {}),
    };
    /** @type {import("../api.js").Result<import("../types.js").Memory>} */
    const result = await post("/v1/memories", body);
    setBusy(false);
    if (!result.ok) {
      setWrong({ [result.error.param ?? "content"]: result.error.message });
      return;
    }
    onClose();
    memoriesAdded.value += 1;
    toast(t.addMemory.addedToast, { action: { label: t.addMemory.open, run: () => go(address("memories", { id: result.data.id })) } });
  };
  /** @param {KeyboardEvent} event */
  const keyed = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void save(event);
  };
  const whom = Object.entries(t.addMemory.whose).map(([value, label]) => ({ value, label: value === "user" && own ? own : label }));
  const kinds = ["note", "fact", "document"].map((value) => ({ value, label: t.kinds[value] ?? value }));
  return html`<${Dialog} title=${t.addMemory.title} onClose=${onClose} actions=${html`
    <${Button} onClick=${onClose}>${t.cancel}<//>
    <${Button} kind="primary" busy=${busy} disabled=${!complete} onClick=${() => form.current?.requestSubmit()}>${t.addMemory.add}<//>`}>
    <form class="editor" ref=${form} onSubmit=${save} onKeyDown=${keyed}>
      <${TextArea} label=${t.addMemory.content} value=${content} onInput=${setContent} rows=${4} wrong=${wrong.content} autofocus />
      <div class="two">
        <${Select} label=${t.memories.kind} value=${kind} options=${kinds} onChange=${setKind} />
        <${Input} label=${t.addMemory.when} type="datetime-local" value=${when} onInput=${setWhen} wrong=${wrong.occurred_at} />
      </div>
      <div class=${named ? "two" : ""}>
        <${Select} label=${t.addMemory.of} value=${whose} options=${whom} onChange=${/** @param {Whose} value */ (value) => { setWhose(value); setId(""); }} />
        ${named && html`<${Input} label=${t.addMemory.ids[whose] ?? ""} value=${id} onInput=${setId} list=${ids} wrong=${wrong[`${whose}_id`]} required />`}
      </div>
      <${Chips} label=${t.memories.tags} values=${tags} onChange=${setTags} placeholder=${t.memories.tagsHint} list=${(known?.tags ?? []).map(({ value }) => ({ value }))} />
      ${Object.entries(wrong).filter(([name]) => !["content", "occurred_at", `${whose}_id`].includes(name)).map(([name, says]) => html`<p class="wrong" role="alert" key=${name}>${says}</p>`)}
    </form>
  <//>`;
}
