// Everything of the key's tenant as one file, and back: checked first, then restored.
import { html, useRef, useState } from "../../ui/core.js";
import { upload } from "../../api.js";
import { Confirm } from "../../ui/dialog.js";
import { Button, Switch } from "../../ui/form.js";
import { Icon } from "../../ui/icons.js";
import { Failed } from "../../ui/states.js";
import { Table } from "../../ui/table.js";
import { toast } from "../../ui/toast.js";
import { t } from "../../strings.js";

/** @typedef {import("../../types.js").Restored} Restored */

/** @param {{ query: URLSearchParams, children: import("../../vendor/htm-preact.js").Child }} props */
export function Archive({ children }) {
  const [vectors, setVectors] = useState(false);
  return html`<div class="page scrolls">
    <header class="page-head">${children}</header>
    <section class="card panel-card"><h2>${t.admin.backup}</h2>
      <p class="quiet">${t.admin.backupBody}</p>
      <div class="actions"><a class="button primary" href=${vectors ? "/v1/archive?vectors=true" : "/v1/archive"} download="memoranda.zip"><${Icon} name="download" />${t.admin.download}</a>
        <${Switch} label=${t.admin.withVectors} checked=${vectors} onChange=${setVectors} /></div>
    </section>
    <${Restore} />
  </div>`;
}

function Restore() {
  const [file, setFile] = useState(/** @type {File | null} */ (null));
  const [report, setReport] = useState(/** @type {{ restored: boolean, of: Restored } | null} */ (null));
  const [error, setError] = useState(/** @type {import("../../api.js").ApiError | null} */ (null));
  const [sent, setSent] = useState(/** @type {number | null} */ (null));
  const [asking, setAsking] = useState(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  /** @param {File} chosen @param {boolean} dry */
  const send = async (chosen, dry) => {
    const form = new FormData();
    if (dry) form.append("dry_run", "true");
    form.append("file", chosen, chosen.name);
    setSent(0);
    setError(null);
    /** @type {import("../../api.js").Result<Restored>} */
    const result = await upload("/v1/archive", form, { abort: new AbortController().signal, onProgress: (done, total) => setSent(total ? done / total : 1) });
    setSent(null);
    if (!result.ok) setError(result.error);
    else setReport({ restored: !dry, of: result.data });
    if (result.ok && !dry) toast(t.admin.restoredToast);
  };
  const choose = () => {
    const chosen = field.current?.files?.[0];
    if (!chosen) return;
    setFile(chosen);
    setReport(null);
    void send(chosen, true);
  };
  const busy = sent !== null;
  return html`<section class="card panel-card"><h2>${t.admin.restore}</h2>
    <p class="quiet">${t.admin.restoreBody}</p>
    <div class="actions">
      <input type="file" accept=".zip" hidden ref=${field} aria-label=${t.admin.archiveFile} onChange=${choose} />
      <${Button} icon="upload" busy=${busy} onClick=${() => field.current?.click()}>${t.admin.choose}<//>
      ${file && html`<span class="id">${file.name}</span>`}
      ${busy && html`<span class="quiet" role="status">${t.admin.sending(sent)}</span>`}
      <span class="spring" />
      ${file && report && !report.restored && html`<${Button} kind="primary" busy=${busy} onClick=${() => setAsking(true)}>${t.admin.restoreNow}<//>`}
    </div>
    ${error && html`<${Failed} error=${error} />`}
    ${report && html`<${Report} report=${report.of} restored=${report.restored} />`}
    ${asking && file && html`<${Confirm} kind="primary" title=${t.admin.restoreTitle} body=${t.admin.restoreConfirm(file.name)} action=${t.admin.restoreNow} onConfirm=${() => void send(file, false)} onClose=${() => setAsking(false)} />`}
  </section>`;
}

/** @param {{ report: Restored, restored: boolean }} props */
function Report({ report, restored }) {
  const rows = Object.entries(report.imported).map(([kind, counts]) => ({ kind, ...counts }));
  /** @typedef {typeof rows[number]} Row */
  const number = /** @param {"read" | "created" | "present"} name */ (name) => ({ title: t.admin.counts[name], number: true, cell: /** @param {Row} row */ (row) => t.number(row[name]) });
  return html`<h3>${restored ? t.admin.restored : t.admin.wouldRestore}</h3>
    ${rows.length === 0 ? html`<p class="quiet">${t.admin.nothingInside}</p>` : html`<${Table} label=${restored ? t.admin.restored : t.admin.wouldRestore} rows=${rows} keyOf=${/** @param {Row} row */ (row) => row.kind} columns=${[
      { title: t.admin.kind, cell: /** @param {Row} row */ (row) => row.kind }, number("read"), ...(restored ? [number("created"), number("present")] : []),
    ]} />`}
    ${report.skipped.length > 0 && html`<h3>${t.admin.skipped}</h3><ul class="points">${report.skipped.map((one, i) => html`<li key=${i} class=${one.failed ? "wrong" : ""}>${t.number(one.count)} × ${one.kind}: ${one.reason}</li>`)}</ul>`}`;
}
