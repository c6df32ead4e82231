// What the scripts of all clients share: where the server is, and the running of their cases.
import assert from 'node:assert/strict';

export const URL = process.env.MEMORANDA_URL;
export const STORE = process.env.MEMORANDA_STORE;
export const MCP = process.env.MEMORANDA_MCP;
export const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=';

// Runs all cases at once, and prints what became of each as a line of JSON.
export async function play(cases) {
  await Promise.all(Object.entries(cases).map(async ([name, run]) => {
    let error = null;
    try {
      await run();
    } catch (thrown) {
      error = thrown?.stack ?? String(thrown);
      if (thrown?.cause) error += `\ncaused by ${thrown.cause?.stack ?? thrown.cause}`;
    }
    console.log(JSON.stringify({ name, error }));
  }));
  process.exit(0);
}

// Waits until `look` gives something that is not false.
export async function until(look, tries = 200) {
  for (let i = 0; i < tries; i++) {
    const seen = await look();
    if (seen) return seen;
    await new Promise(go => setTimeout(go, 25));
  }
  assert.fail('waited too long');
}

// What an asynchronous iterable gives, as a list.
export async function listed(source) {
  const all = [];
  for await (const one of source) all.push(one);
  return all;
}

// The error that a promise is refused with.
export async function refused(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.fail('nothing was refused');
}
