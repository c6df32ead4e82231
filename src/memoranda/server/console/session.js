// Who uses the console, and the login. The key goes to the server once; scripts never hold it afterwards.
import { signal } from "./ui/core.js";

/**
 * @typedef {{ login: boolean, signed_in: boolean, name: string | null, tenant: string | null, user: string | null, role: string | null, csrf: string | null, ends_at: string | null }} Session
 */

/** Null until the server has said who this is. */
export const session = signal(/** @type {Session | null} */ (null));
/** Why the server did not say it. */
export const sessionError = signal(/** @type {string | null} */ (null));

/** Asks the server who this is. */
export async function loadSession() {
  sessionError.value = null;
  await take(fetch("/console/session"));
}

/**
 * Signs in with a key. Answers what is wrong, or null.
 * @param {string} key
 * @returns {Promise<string | null>}
 */
export async function signIn(key) {
  return take(fetch("/console/login", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ key }),
  }));
}

/** Removes the cookie. */
export async function signOut() {
  await take(fetch("/console/logout", { method: "POST", headers: { "X-Memoranda-CSRF": session.peek()?.csrf ?? "" } }));
  signedOut();
}

/** The session has ended: the login is shown. */
export function signedOut() {
  const current = session.peek();
  if (current?.login && current.signed_in) session.value = { ...current, signed_in: false, csrf: null };
}

/**
 * Takes the session that a request answers; answers what is wrong, or null.
 * @param {Promise<Response>} request
 * @returns {Promise<string | null>}
 */
async function take(request) {
  try {
    const response = await request;
    const body = await response.json();
    if (response.ok) {
      session.value = body;
      return null;
    }
    sessionError.value = body.error?.message ?? `HTTP ${response.status}`;
  } catch (thrown) {
    sessionError.value = thrown instanceof Error ? thrown.message : String(thrown);
  }
  return sessionError.peek();
}
