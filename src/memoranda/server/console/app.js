// The shell: who uses the console, the navigation, and the page that the address names.
import { html, render, useEffect, useErrorBoundary, useId, useLayoutEffect, useRef, useSignal, useState } from "./ui/core.js";
import { AddMemoryDialog } from "./ui/add_memory.js";
import { Button, IconButton, Input } from "./ui/form.js";
import { Icon } from "./ui/icons.js";
import { Palette, PaletteButton } from "./ui/palette.js";
import { Empty, Failed, Loading } from "./ui/states.js";
import { Toasts } from "./ui/toast.js";
import { address, followLink, go, place, usePlace } from "./router.js";
import { loadSession, session, sessionError, signIn, signOut } from "./session.js";
import { THEMES, theme } from "./theme.js";
import { t } from "./strings.js";
import { VIEWS } from "./views/index.js";

const HOME = /** @type {import("./views/index.js").Page} */ (VIEWS[0]).path;

function App() {
  const current = useSignal(session);
  const error = useSignal(sessionError);
  if (current === null) {
    if (error === null) return html`<main class="alone"><${Loading} lines=${3} /></main>`;
    const failed = { kind: "failed", status: 0, code: null, param: null, message: error };
    return html`<main class="alone"><${Failed} error=${failed} retry=${loadSession} /></main>`;
  }
  return current.signed_in ? html`<${Shell} />` : html`<${Login} ended=${current.name !== null} />`;
}

/** @param {{ ended: boolean }} props */
function Login({ ended }) {
  const [key, setKey] = useState("");
  const [wrong, setWrong] = useState(/** @type {string | null} */ (null));
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = t.titleOf(t.session.title);
    document.querySelector("input")?.focus();
  }, []);
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    const problem = await signIn(key.trim());
    setBusy(false);
    setWrong(problem);
  };
  return html`<main class="alone">
    <form class="login card" onSubmit=${submit}>
      <${Brand} />
      <h1>${t.session.title}</h1>
      <p class="quiet">${ended ? t.session.ended : t.session.lead}</p>
      <${Input} label=${t.session.key} type="password" value=${key} onInput=${setKey} wrong=${wrong} autocomplete="current-password" required mono />
      <${Button} type="submit" kind="primary" busy=${busy} disabled=${key.trim() === ""}>${t.session.submit}<//>
    </form>
  </main>`;
}

function Brand() {
  return html`<span class="brand"><span class="mark" aria-hidden="true">M</span>${t.product}</span>`;
}

function Shell() {
  const { view } = usePlace();
  const [open, setOpen] = useState(false);
  const page = VIEWS.find((one) => one.path === view);
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const shown = useRef(view);
  useEffect(() => {
    document.title = t.titleOf(page?.title ?? t.unknownView);
    setOpen(false);
    if (shown.current !== view) main.current?.focus();
    shown.current = view;
  }, [view]);
  return html`<div class="shell" onClick=${followLink}>
    <a class="skip" href="#main" onClick=${/** @param {Event} event */ (event) => { event.preventDefault(); main.current?.focus(); }}>${t.skip}</a>
    <header class="topbar">
      <${IconButton} icon="menu" label=${t.menu} expanded=${open} onClick=${() => setOpen(!open)} />
      <span class="topbar-title">${page?.title ?? t.product}</span><span class="spring" />
      <${PaletteButton} bare />
    </header>
    <aside class=${`sidebar ${open ? "open" : ""}`} aria-label=${t.product}>
      <${Brand} /><${PaletteButton} />
      <nav aria-label=${t.nav.label}>
        ${VIEWS.map((one) => html`<a key=${one.path} href=${address(one.path)} aria-current=${one.path === view ? "page" : null} onClick=${() => setOpen(false)}>
          <${Icon} name=${one.icon} />${one.title}
        </a>`)}
      </nav>
      <div class="sidebar-end"><${ThemeSwitch} /><${Who} /></div>
    </aside>
    ${open && html`<div class="scrim" onClick=${() => setOpen(false)} />`}
    <main id="main" ref=${main} tabIndex=${-1}>
      ${page ? html`<${Page} key=${page.path} page=${page} />` : html`<${Empty} title=${t.unknownView} body=${t.unknownViewBody} />`}
    </main>
    <${Palette} pages=${VIEWS} /><${AddMemoryDialog} />
    <${Toasts} />
  </div>`;
}

/** The modules of the pages that were opened, by path. @type {Map<string, { View: unknown }>} */
const modules = new Map();

/** Loads the module of a page. @param {import("./views/index.js").Page} page */
async function loadPage(page) {
  const module = await page.load();
  modules.set(page.path, module);
  return module;
}

/** Loads the module of a page when it is opened first. @param {{ page: import("./views/index.js").Page }} props */
function Page({ page }) {
  const [module, setModule] = useState(modules.get(page.path) ?? null);
  const [broken, setBroken] = useState(/** @type {unknown} */ (null));
  const [thrown, reset] = useErrorBoundary((error) => console.error(error));
  const load = () => {
    setBroken(null);
    loadPage(page).then(setModule, setBroken);
  };
  useLayoutEffect(() => void (module === null && load()), [page]);
  const error = thrown ?? broken;
  if (error) {
    const message = error instanceof Error ? error.message : String(error);
    return html`<${Failed} error=${{ kind: "failed", status: 0, code: null, param: null, message }} retry=${() => { reset(); load(); }} />`;
  }
  return module === null ? html`<div class="page"><${Loading} /></div>` : html`<${module.View} />`;
}

function ThemeSwitch() {
  const current = useSignal(theme);
  const name = useId();
  /** @type {Record<string, string>} */
  const icons = { system: "system", light: "sun", dark: "moon" };
  /** @type {Record<string, string>} */
  const labels = { system: t.theme.system, light: t.theme.light, dark: t.theme.dark };
  return html`<fieldset class="themes"><legend class="hidden">${t.theme.label}</legend>
    ${THEMES.map((one) => html`<label key=${one} title=${labels[one]}>
      <input type="radio" name=${name} checked=${one === current} onChange=${() => (theme.value = one)} />
      <${Icon} name=${icons[one]} /><span class="hidden">${labels[one]}</span>
    </label>`)}
  </fieldset>`;
}

function Who() {
  const current = /** @type {import("./session.js").Session} */ (useSignal(session));
  const where = [current.tenant, current.user, current.role].filter(Boolean).join(" · ");
  return html`<div class="who">
    <span class="who-text"><span class="who-name" title=${current.login ? "" : t.session.localHint}>${current.name ?? t.session.local}</span><span class="quiet">${where}</span></span>
    ${current.login && html`<${IconButton} icon="signout" label=${t.session.signOut} onClick=${signOut} />`}
  </div>`;
}

if (place.peek().view === "") go(address(HOME), { replace: true });
const first = VIEWS.find((one) => one.path === place.peek().view);
// Rendered once for both: each rendering takes a frame, and a page that fails is loaded again, with its error.
void Promise.allSettled([loadSession(), first && loadPage(first)]).then(() =>
  render(html`<${App} />`, /** @type {Element} */ (document.getElementById("app"))));
