// How far a session is.
import { html } from "../../ui/core.js";
import { Badge } from "../../ui/badge.js";
import { t } from "../../strings.js";

/** @type {Record<string, "" | "good" | "bad" | "accent">} */
const TONES = { open: "accent", closed: "", summarized: "good", failed: "bad" };

/** @param {{ status: import("../../types.js").SessionStatus }} props */
export const Status = ({ status }) => html`<${Badge} tone=${TONES[status]}>${t.sessions.statuses[status]}<//>`;
