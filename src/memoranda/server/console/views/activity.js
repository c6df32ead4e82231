// Activity: the latest requests with what they took, usage, and the server's own measurements.
import { html } from "../ui/core.js";
import { Modes } from "../ui/modes.js";
import { address, usePlace } from "../router.js";
import { t } from "../strings.js";
import { Requests } from "./activity/requests.js";
import { ServerTimes } from "./activity/server.js";
import { Usage } from "./activity/usage.js";

/** @type {Record<string, typeof Requests>} */
const PARTS = { requests: Requests, usage: Usage, server: ServerTimes };

export function View() {
  const { query } = usePlace();
  const part = query.get("part") ?? "requests";
  const Part = PARTS[part] ?? Requests;
  const modes = Object.entries(t.activity.parts).map(([id, label]) => ({ id, label, href: address("activity", { part: id === "requests" ? null : id }) }));
  return html`<${Part} query=${query}><h1>${t.activity.title}</h1><${Modes} label=${t.activity.modes} modes=${modes} current=${part in PARTS ? part : "requests"} /><//>`;
}
