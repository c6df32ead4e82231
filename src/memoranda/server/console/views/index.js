// The pages of the console, in the order of the navigation. One line adds one.
import { t } from "../strings.js";

/**
 * @typedef {{ path: string, title: string, icon: string, load: () => Promise<{ View: (props: {}) => import("../vendor/htm-preact.js").Child }> }} Page
 * @type {Page[]}
 */
export const VIEWS = [
  { path: "home", title: t.home.title, icon: "home", load: () => import("./home.js") },
  { path: "memories", title: t.nav.memories, icon: "memories", load: () => import("./memories.js") },
  { path: "sessions", title: t.sessions.title, icon: "sessions", load: () => import("./sessions.js") },
  { path: "facts", title: t.facts.title, icon: "facts", load: () => import("./facts.js") },
  { path: "forget", title: t.forget.title, icon: "forget", load: () => import("./forget.js") },
  { path: "context", title: t.nav.context, icon: "context", load: () => import("./context.js") },
  { path: "ask", title: t.nav.ask, icon: "ask", load: () => import("./ask.js") },
  { path: "knowledge", title: t.nav.knowledge, icon: "knowledge", load: () => import("./knowledge.js") },
  { path: "evaluation", title: t.evaluation.title, icon: "evaluation", load: () => import("./evaluation.js") },
  { path: "map", title: t.map.title, icon: "map", load: () => import("./map.js") },
  { path: "activity", title: t.activity.title, icon: "activity", load: () => import("./activity.js") },
  { path: "admin", title: t.admin.title, icon: "admin", load: () => import("./admin.js") },
];
