// The client against a server at MEMORANDA_URL that has no keys, and whose model says MEMORANDA_SAYS.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { Conflict, DimensionMismatch, InvalidInput, Memoranda, NotFound, StorageError, Unauthorized } from 'memoranda';

const baseURL = process.env.MEMORANDA_URL;
const memoranda = new Memoranda({ baseURL });

/** Answers every request with this handler for as long as `use` runs. */
async function serving(handler, use) {
  const server = createServer(handler);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await use(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test('a memory from its first day to its last', async () => {
  const scopes = ['user:ada'];
  const added = await memoranda.memories.add({ content: 'Ada keeps bees.', user_id: 'ada', metadata: { year: 2020 } });
  assert.equal(added.created, true);
  assert.equal((await memoranda.memories.add({ content: 'Ada keeps bees.', user_id: 'ada' })).created, false);
  const found = await memoranda.memories.search({ query: 'Who keeps bees?', scopes });
  assert.deepEqual(found.results.map((hit) => hit.memory.id), [added.id]);
  assert.deepEqual(found.degraded, []);
  assert.equal((await memoranda.memories.update(added.id, { tags: ['hobby'] })).tags[0], 'hobby');
  assert.equal((await memoranda.memories.get(added.id)).content, 'Ada keeps bees.');
  const page = await memoranda.memories.list({ scopes, tags: ['hobby'], filters: { year: 2020 } });
  assert.deepEqual(page.data.map((memory) => memory.id), [added.id]);
  assert.deepEqual((await memoranda.memories.list({ scopes, filters: { year: 2021 } })).data, []);
  assert.equal((await memoranda.memories.delete(added.id)).deleted, true);
  await assert.rejects(memoranda.memories.get(added.id), NotFound);
});

test('many memories, counted, exported and forgotten', async () => {
  const scopes = ['user:bob'];
  const added = await memoranda.memories.addMany([
    { content: 'Bob plays chess.', user_id: 'bob' },
    { content: 'Bob rides a bike.', user_id: 'bob' },
  ]);
  assert.equal(added.created, 2);
  assert.equal(await memoranda.memories.count({ scopes }), 2);
  assert.deepEqual((await memoranda.memories.facets({ scopes })).scopes, [{ value: 'user:bob', count: 2 }]);
  assert.equal(await memoranda.memories.countAccess([added.data[0].id, 'none']), 1);
  const lines = [];
  for await (const line of memoranda.memories.export({ scopes })) lines.push(line);
  assert.deepEqual(lines.slice(1).map((line) => line.content).sort(), ['Bob plays chess.', 'Bob rides a bike.']);
  const ids = added.data.map((memory) => memory.id);
  assert.deepEqual((await memoranda.memories.previewForget({ ids })).counts, { memories: 2 });
  assert.equal((await memoranda.memories.forget({ ids })).memories, 2);
  assert.equal(await memoranda.memories.count({ scopes }), 0);
});

test('an id may hold any character', async () => {
  const { id } = await memoranda.memories.add({ id: 'a/b?c d', content: 'A strange name.' });
  assert.equal((await memoranda.memories.get(id)).content, 'A strange name.');
  await memoranda.memories.delete(id);
});

test('an id that would lead to another route is refused', async () => {
  for (const id of ['', '.', '..', '\ud800', undefined, null]) {
    await assert.rejects(memoranda.memories.delete(id), { name: 'InvalidInput', param: 'id' });
    await assert.rejects(memoranda.sessions.messages(id), { name: 'InvalidInput', param: 'session_id' });
  }
  await assert.rejects(memoranda.memories.get('...'), NotFound);
});

test('filters that are too long for a listing are refused', async () => {
  const filters = { id: Array.from({ length: 3000 }, () => randomUUID()) };
  await assert.rejects(memoranda.memories.list({ filters }), { name: 'InvalidInput', param: 'filters' });
  assert.equal(await memoranda.memories.count({ filters }), 0);
  const fitting = { id: filters.id.slice(0, 1000) };
  assert.deepEqual((await memoranda.memories.list({ filters: fitting })).data, []);
});

test('what is said is found, put into a context and kept once', async () => {
  const said = { session_id: 'js-lamp', messages: [{ id: 'js-lamp-1', content: 'The lamp is in the attic.' }] };
  assert.equal((await memoranda.observe(said)).created, 1);
  assert.equal((await memoranda.observe(said)).present, 1);
  const context = await memoranda.context({ query: 'Where is the lamp?', scopes: ['session:js-lamp'], recent: [] });
  assert.match(context.text, /in the attic/);
  const { sessions } = memoranda;
  assert.deepEqual((await sessions.messages('js-lamp')).data.map((one) => one.id), ['js-lamp-1']);
  assert.equal((await sessions.updateMessage('js-lamp', 'js-lamp-1', 'The lamp is lit.')).content, 'The lamp is lit.');
  assert.equal((await sessions.close('js-lamp')).status, 'closed');
  assert.equal((await sessions.get('js-lamp')).message_count, 1);
  assert.ok((await sessions.list({ limit: 1000 })).data.some((one) => one.id === 'js-lamp'));
  assert.equal((await sessions.delete('js-lamp')).deleted, true);
  await assert.rejects(sessions.get('js-lamp'), NotFound);
});

test('the versions of a fact', async () => {
  const { id } = await memoranda.memories.add({ content: 'Cem lives in Rome.', kind: 'fact', user_id: 'cem' });
  assert.ok((await memoranda.facts.timeline({ scopes: ['user:cem'] })).data.some((chain) => chain.id === id));
  assert.deepEqual((await memoranda.facts.history(id)).data.map((version) => version.memory.id), [id]);
  assert.deepEqual((await memoranda.facts.consolidate({ scopes: ['user:cem'] })).merged, []);
  assert.equal((await memoranda.facts.confirm(id)).confidence, 1);
  assert.deepEqual((await memoranda.facts.undo(id)).restored, []);
});

test('a file in a store, found and read', async () => {
  const { files, stores } = memoranda;
  const store = await stores.create({ name: 'manuals' });
  const source = { name: 'kettle.txt', data: 'Fill the kettle with vinegar to clean it.' };
  const attached = await stores.upload(store.id, source, { attributes: { year: 2024 } });
  assert.equal((await stores.waitFile(store.id, attached.id)).status, 'completed');
  const found = await stores.search(store.id, { query: 'vinegar', filters: { type: 'eq', key: 'year', value: 2024 } });
  assert.equal(found.data[0].filename, 'kettle.txt');
  assert.equal(await stores.text(store.id, attached.id), source.data);
  assert.equal(await new Response(await files.content(attached.id)).text(), source.data);
  assert.deepEqual((await stores.files(store.id)).data.map((one) => one.id), [attached.id]);
  await stores.detach(store.id, attached.id);
  await files.delete(attached.id);
  await stores.delete(store.id);
  await assert.rejects(stores.get(store.id), NotFound);
});

test('a file that is uploaded and attached', async () => {
  const { files, stores } = memoranda;
  const file = await files.upload({ name: 'a.bin', data: new Uint8Array([1, 2, 3]) }, { purpose: 'user_data', expiresAfterSeconds: 3600 });
  assert.equal(file.bytes, 3);
  assert.ok(file.expires_at);
  assert.ok((await files.list({ purpose: 'user_data' })).data.some((one) => one.id === file.id));
  const store = await stores.create();
  assert.equal((await stores.attach(store.id, file.id)).id, file.id);
  await stores.delete(store.id);
  await files.delete(file.id);
});

test('a response, whole and streamed', async () => {
  const asked = { input: 'Where is the kettle?', store: false };
  const whole = await memoranda.responses.create(asked);
  assert.equal(whole.output.at(-1).content[0].text, process.env.MEMORANDA_SAYS);
  let text = '';
  for await (const event of memoranda.responses.stream(asked)) {
    if (event.type === 'response.output_text.delta') text += event.delta;
  }
  assert.equal(text, process.env.MEMORANDA_SAYS);
});

test('vectors of the server can be sent back', async () => {
  const [embedding] = await memoranda.embed(['a green door']);
  const { id } = await memoranda.memories.add({ content: 'a green door', embedding, session_id: 'js-vectors' });
  const [query] = await memoranda.embed(['a green door'], { task: 'query' });
  const found = await memoranda.memories.search({ query: 'x', embedding: query, mode: 'dense', scopes: ['session:js-vectors'] });
  assert.equal(found.results[0].memory.id, id);
  const short = memoranda.memories.add({ content: 'too short', embedding: [1, 2] });
  await assert.rejects(short, DimensionMismatch);
});

test('every route is there, typed', async () => {
  const { data } = await memoranda.http.GET('/v1/models');
  assert.equal(data.object, 'list');
});

test('what is wrong is an error of its class, which names the field', async () => {
  const error = await memoranda.memories.add({ content: 'x', tags: ['a'.repeat(10_000)] }).catch((found) => found);
  assert.ok(error instanceof InvalidInput);
  assert.equal(error.name, 'InvalidInput');
  assert.equal(error.status, 400);
  assert.equal(error.code, 'invalid_value');
  assert.match(error.param, /^tags/);
  assert.ok(error.message.startsWith(error.param));
  assert.ok(error.requestId);
  await memoranda.memories.add({ id: 'js-conflict', content: 'one' });
  await assert.rejects(memoranda.memories.add({ id: 'js-conflict', content: 'two' }), Conflict);
});

test('a key that nobody knows is refused', async () => {
  await serving(
    (request, response) => {
      const known = request.headers.authorization === 'Bearer k' && request.headers['x-memoranda-user'] === 'ada';
      const error = { message: 'this key is not known', type: 'authentication_error', param: null, code: 'invalid_api_key' };
      response.writeHead(known ? 200 : 401, { 'content-type': 'application/json' });
      response.end(JSON.stringify(known ? { count: 7 } : { error }));
    },
    async (url) => {
      assert.equal(await new Memoranda({ baseURL: url, apiKey: 'k', user: 'ada' }).memories.count(), 7);
      await assert.rejects(new Memoranda({ baseURL: url, apiKey: 'x' }).memories.count(), Unauthorized);
    },
  );
});

test('a user may have any name', async () => {
  await serving(
    (request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ count: Buffer.from(request.headers['x-memoranda-user'], 'latin1').toString('utf8') }));
    },
    async (url) => {
      for (const user of ['zo\u00eb', '\u82b1\u5b50']) assert.equal(await new Memoranda({ baseURL: url, user }).memories.count(), user);
    },
  );
});

test('an answer of something else is an error', async () => {
  await serving(
    (_, response) => response.writeHead(502).end('<html>'),
    async (url) => {
      const error = await new Memoranda({ baseURL: url }).memories.count().catch((found) => found);
      assert.ok(error instanceof StorageError);
      assert.equal(error.status, 502);
    },
  );
});

test('an answer that breaks off is an error, whole or streamed', async () => {
  await serving(
    (request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
      response.write('{"count"', () => response.destroy());
    },
    async (url) => {
      const client = new Memoranda({ baseURL: url });
      await assert.rejects(client.memories.count(), { name: 'StorageError', message: /broke off/ });
      await assert.rejects(client.memories.export().next(), { name: 'StorageError', message: /broke off/ });
      await assert.rejects(client.http.GET('/v1/models'), { name: 'StorageError', message: /broke off/ });
      const content = await client.files.content('x');
      await assert.rejects(new Response(content).text(), { name: 'StorageError', message: /broke off/ });
    },
  );
});

test('an answer that is not JSON is an error', async () => {
  await serving(
    (request, response) => response.end(request.url.endsWith('/responses') ? 'data: {"type": "res' : '<html>'),
    async (url) => {
      const { memories, responses } = new Memoranda({ baseURL: url });
      for (const call of [memories.count(), memories.export().next(), responses.stream('x').next()]) {
        await assert.rejects(call, { name: 'StorageError', message: /not JSON/ });
      }
    },
  );
});

test('a server that is not there, or does not answer in time', async () => {
  const error = await new Memoranda({ baseURL: 'http://127.0.0.1:2' }).memories.count().catch((found) => found);
  assert.ok(error instanceof StorageError);
  assert.match(error.message, /did not answer: .*ECONNREFUSED/);
  await serving(
    () => {},
    async (url) => {
      await assert.rejects(new Memoranda({ baseURL: url, timeout: 50 }).memories.count(), /within 50 ms/);
      for (const timeout of [Infinity, 2 ** 31]) {
        const late = new Memoranda({ baseURL: url, timeout }).memories.count({}, { signal: AbortSignal.timeout(50) });
        await assert.rejects(late, { name: 'TimeoutError' });
      }
      const late = new Memoranda({ baseURL: url }).memories.count({}, { signal: AbortSignal.timeout(50) });
      await assert.rejects(late, { name: 'TimeoutError' });
    },
  );
});

test('an option that cannot be one is refused', () => {
  for (const wrong of ['localhost:8377', 'http://127.0.0.1:8377/v1', '', 'http://127.0.0.1:99999', 'http://a b', 'http://u:p@127.0.0.1']) {
    assert.throws(() => new Memoranda({ baseURL: wrong }), { name: 'InvalidInput', param: 'baseURL' });
  }
  assert.throws(() => new Memoranda({ timeout: 0 }), InvalidInput);
  assert.throws(() => new Memoranda({ apiKey: '\u82b1' }), { name: 'InvalidInput', param: 'apiKey' });
  assert.throws(() => new Memoranda({ user: 'a\nb' }), { name: 'InvalidInput', param: 'user' });
});
