// Whether facts are extracted and summaries made: for a tenant, or for one of its channels.
import { html, useDebounced, useEffect, useLoaded, useRef, useState } from "../../ui/core.js";
import { get, part, post } from "../../api.js";
import { Badge } from "../../ui/badge.js";
import { Confirm } from "../../ui/dialog.js";
import { Input, Select } from "../../ui/form.js";
import { Loaded } from "../../ui/states.js";
import { TenantInput } from "../../ui/tenant.js";
import { toast } from "../../ui/toast.js";
import { setQuery } from "../../router.js";
import { t } from "../../strings.js";

/**
 * @typedef {import("../../types.js").Switches} Switches
 * @typedef {import("../../types.js").SwitchName} SwitchName
 */

/** @type {SwitchName[]} */
const NAMES = ["extraction", "session_summaries", "conversation_summaries"];
const PAUSE = 300; // milliseconds without a key before another channel is asked about

/** @param {{ query: URLSearchParams, children: import("../../vendor/htm-preact.js").Child }} props */
export function SwitchesPart({ query, children }) {
  const tenant = query.get("tenant");
  return html`<div class="page scrolls">
    <header class="page-head">${children}</header>
    <p class="quiet lead">${t.admin.switchesLead}</p>
    <div class="usage-bar"><${TenantInput} tenant=${tenant} /></div>
    <${Card} key=${`tenant ${tenant}`} path="/v1/admin/switches" tenant=${tenant} title=${t.admin.switchesOfTenant} unset=${t.admin.asConfigured} />
    <${Channel} channel=${query.get("channel") ?? ""} />
  </div>`;
}

/** A channel of the key's own tenant. @param {{ channel: string }} props */
function Channel({ channel }) {
  const [text, setText] = useState(channel);
  const written = useRef(channel);
  const settled = useDebounced(text.trim(), PAUSE);
  useEffect(() => {
    if (settled !== written.current) {
      written.current = settled;
      setQuery({ channel: settled });
    }
  }, [settled]);
  return html`<div class="usage-bar"><${Input} label=${t.admin.channel} value=${text} onInput=${setText} placeholder=${t.admin.channelHint} /></div>
    ${channel && html`<${Card} key=${channel} path=${`/v1/channels/${part(channel)}/switches`} tenant=${null} title=${t.admin.switchesOfChannel(channel)} unset=${t.admin.asTenant} />`}`;
}

/** @param {{ path: string, tenant: string | null, title: string, unset: string }} props */
function Card({ path, tenant, title, unset }) {
  const query = tenant === null ? {} : { tenant };
  const loaded = useLoaded(path, (abort) => /** @type {Promise<import("../../api.js").Result<Switches>>} */ (get(path, { query, abort })));
  const [asking, setAsking] = useState(/** @type {{ name: SwitchName, value: boolean | null } | null} */ (null));
  /** @param {SwitchName} name @param {boolean | null} value */
  const set = async (name, value) => {
    /** @type {import("../../api.js").Result<Switches>} */
    const result = await post(path, { [name]: value, ...query });
    if (!result.ok) toast(result.error.message, { bad: true });
    else {
      toast(t.admin.switchedToast);
      loaded.set(result.data);
    }
  };
  return html`<section class="card panel-card" aria-label=${title}><h2>${title}</h2>
    <${Loaded} of=${loaded} lines=${3}>${/** @param {Switches} switches */ (switches) => html`
      <div class="switches">${NAMES.map((name) => html`<div class="switch-row" key=${name}>
        <div><strong>${t.admin.switches[name]}</strong><p class="quiet">${t.admin.switchHints[name]}</p></div>
        <${Badge} tone=${switches.in_force[name] ? "good" : ""}>${switches.in_force[name] ? t.admin.inForceOn : t.admin.inForceOff}<//>
        <${Select} label=${`${t.admin.switches[name]}: ${title}`} bare value=${switches[name] === null ? "" : String(switches[name])}
          options=${[{ value: "", label: unset }, { value: "true", label: t.admin.on }, { value: "false", label: t.admin.off }]}
          onChange=${/** @param {string} value */ (value) => setAsking({ name, value: value === "" ? null : value === "true" })} />
      </div>`)}</div>
      ${asking && html`<${Confirm} kind="primary" title=${t.admin.switchTitle} action=${t.admin.confirm} onConfirm=${() => void set(asking.name, asking.value)} onClose=${() => setAsking(null)}
        body=${t.admin.switchBody(t.admin.switches[asking.name], asking.value === null ? unset : asking.value ? t.admin.on : t.admin.off, title)} />`}`}<//>
  </section>`;
}
