// How a request ended.
import { html } from "../../ui/core.js";
import { Badge } from "../../ui/badge.js";
import { t } from "../../strings.js";
import { TONES } from "./entry.js";

/** @param {{ status: string }} props */
export const RequestStatus = ({ status }) => html`<${Badge} tone=${TONES[status] ?? ""}>${t.activity.statuses[status] ?? status}<//>`;
