// Mastra's memory in a storage on a server at MEMORANDA_URL, whose embedding model is hash:64.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { InMemoryStore, MastraCompositeStore } from '@mastra/core/storage';
import { createTool } from '@mastra/core/tools';
import { Memory } from '@mastra/memory';
import { InvalidInput, Memoranda, NotFound } from 'memoranda';
import { embeddingModel, MemorandaMemoryStorage, MemorandaStorage, MemorandaVector } from 'memoranda/mastra';

import { scripted } from './scripted.mjs';

const memoranda = new Memoranda({ baseURL: process.env.MEMORANDA_URL });
const storage = new MemorandaMemoryStorage({ memoranda, name: 'tests' });
const START = Date.parse('2026-03-01T10:00:00.123Z');

let made = 0;

function threadOf(id, resourceId = `user of ${id}`, more = {}) {
  const at = new Date(START + made++);
  return { id, resourceId, title: `Title of ${id}`, metadata: { topic: 'tea' }, createdAt: at, updatedAt: at, ...more };
}

function messageOf(id, threadId, minute, text = `Text of ${id}.`, more = {}) {
  const content = { format: 2, parts: [{ type: 'text', text }] };
  const place = { threadId, resourceId: `user of ${threadId}` };
  return { id, role: 'user', type: 'v2', createdAt: new Date(START + minute * 60_000), content, ...place, ...more };
}

const ids = (values) => values.map(({ id }) => id);
const contents = async (session) => (await memoranda.sessions.messages(session)).data.map(({ content }) => content);
const items = (threadId) => memoranda.memories.count({ kinds: ['item'], scopes: [`session:${threadId}`] });

// --- threads ---------------------------------------------------------------------------------------------

test('a thread from its first day to its last', async () => {
  const thread = threadOf('life');
  assert.equal(await storage.getThreadById({ threadId: 'life' }), null);
  assert.deepEqual(await storage.saveThread({ thread }), thread);
  assert.deepEqual(await storage.getThreadById({ threadId: 'life' }), thread);
  assert.deepEqual(await storage.getThreadById({ threadId: 'life', resourceId: thread.resourceId }), thread);
  assert.equal(await storage.getThreadById({ threadId: 'life', resourceId: 'somebody else' }), null);
  await storage.saveThread({ thread: { ...thread, title: undefined, metadata: { other: 1 } } });
  const { title, metadata } = await storage.getThreadById({ threadId: 'life' });
  assert.deepEqual([title, metadata], [undefined, { other: 1 }]);
  await storage.saveMessages({ messages: [messageOf('life-1', 'life', 1)] });
  await storage.deleteThread({ threadId: 'life' });
  assert.equal(await storage.getThreadById({ threadId: 'life' }), null);
  assert.deepEqual((await storage.listMessages({ threadId: 'life' })).messages, []);
  assert.equal(await items('life'), 0);
  await assert.rejects(memoranda.sessions.get('life'), NotFound);
  await storage.deleteThread({ threadId: 'life' });
});

test('a change of a thread leaves what it does not name, also at the same time', async () => {
  const thread = threadOf('partial', 'mara', { metadata: { mode: 'plan', workingMemory: 'tea' } });
  await storage.saveThread({ thread });
  const another = new MemorandaMemoryStorage({ memoranda, name: 'tests' });
  await Promise.all([
    storage.updateThread({ id: 'partial', title: '' }),
    another.updateThread({ id: 'partial', metadata: { mode: 'act' } }),
    another.updateThread({ id: 'partial', metadata: { step: 2 } }),
    storage.saveMessages({ messages: [messageOf('partial-1', 'partial', 1)] }),
  ]);
  const changed = await storage.getThreadById({ threadId: 'partial' });
  assert.deepEqual({ ...changed, updatedAt: 0 }, { ...thread, title: '', metadata: { mode: 'act', workingMemory: 'tea', step: 2 }, updatedAt: 0 });
  assert.ok(changed.updatedAt > thread.updatedAt);
  assert.equal((await storage.patchThread({ id: 'partial', title: 'New' })).title, 'New');
  await assert.rejects(storage.updateThread({ id: 'none', title: 'x' }), NotFound);
});

test('threads are listed by resource and metadata, sorted, in pages', async () => {
  const mine = ['b', 'd', 'a', 'c'].map((id, i) => threadOf(`list-${id}`, 'lister', {
    createdAt: new Date(START + id.charCodeAt(0)), updatedAt: new Date(START + 10 - i), metadata: { even: i % 2 === 0, n: i },
  }));
  for (const thread of [...mine, threadOf('list-x', 'another')]) await storage.saveThread({ thread });
  const filter = { resourceId: 'lister' };
  const listed = async (input) => ids((await storage.listThreads({ filter, ...input })).threads).map((id) => id.at(-1)).join('');
  assert.equal(await listed({}), 'dcba');
  assert.equal(await listed({ orderBy: { field: 'createdAt', direction: 'ASC' } }), 'abcd');
  assert.equal(await listed({ orderBy: { field: 'updatedAt', direction: 'DESC' } }), 'bdac');
  assert.equal(await listed({ filter: { ...filter, metadata: { even: true } } }), 'ba');
  assert.equal(await listed({ filter: { ...filter, metadata: { even: true, n: 2 } } }), 'a');
  for (const orderBy of [{ field: 'createdAt' }, { field: 'updatedAt' }]) {
    const pages = [];
    for (const page of [0, 1, 2]) pages.push(await storage.listThreads({ filter, page, perPage: 2, orderBy }));
    assert.deepEqual(pages.map(({ total, hasMore, threads }) => [total, hasMore, threads.length]), [[4, true, 2], [4, false, 2], [4, false, 0]]);
  }
  assert.deepEqual((await storage.listThreads({ filter, perPage: false })).threads.find(({ id }) => id === 'list-a'), mine[2]);
  assert.ok((await storage.listThreads({ perPage: false })).total >= 5);
  await assert.rejects(storage.listThreads({ page: -1 }));
  await assert.rejects(storage.listThreads({ filter: { metadata: { 'a.b': 1 } } }));
});

// --- messages --------------------------------------------------------------------------------------------

test('of a very long text the first MiB is observed', async () => {
  await storage.saveThread({ thread: threadOf('huge') });
  const messages = [messageOf('huge-1', 'huge', 1, 'x'.repeat(1_400_000)), messageOf('huge-2', 'huge', 2)];
  await storage.saveMessages({ messages });
  assert.deepEqual((await storage.listMessages({ threadId: 'huge' })).messages, messages);
  assert.deepEqual(await contents('huge'), ['x'.repeat(1 << 20), 'Text of huge-2.']);
});

test('messages come back exactly, short and long', async () => {
  const odd = { 'a.b': [1, 1.5, null, true], $set: { '': '\0 \ud800 "\\" \u2028' }, extracted_by: 'rules', __proto: 1 };
  const parts = [
    { type: 'step-start' },
    { type: 'reasoning', reasoning: '', details: [{ type: 'text', text: 'Hm.' }] },
    { type: 'tool-invocation', toolInvocation: { state: 'result', toolCallId: 'c', toolName: 'look', args: odd, result: '🫖'.repeat(60_001) } },
    { type: 'text', text: 'Tea, then.', providerMetadata: { x: odd } },
  ];
  const long = messageOf('exact-2', 'exact', 2, '', { role: 'assistant', content: { format: 2, parts, metadata: odd, content: 'Tea, then.' } });
  const pairs = ['', 'x'].map((odd, i) => messageOf(`exact-${3 + i}`, 'exact', 3, odd + '🫖'.repeat(20_000), { role: 'system' }));
  const messages = [messageOf('exact-1', 'exact', 1, '\0 \ud800 a'), long, ...pairs];
  await storage.saveMessages({ messages });
  assert.deepEqual((await storage.listMessages({ threadId: 'exact' })).messages, JSON.parse(JSON.stringify(messages), revived));
  assert.deepEqual((await storage.listMessagesById({ messageIds: ['exact-2', 'none'] })).messages, [long]);
  const all = await items('exact');
  assert.ok(all > 10);
  const short = { ...long, content: messages[0].content };
  await storage.saveMessages({ messages: [short] });
  assert.deepEqual((await storage.listMessagesById({ messageIds: ['exact-2'] })).messages, [short]);
  assert.ok((await items('exact')) < all - 6);
  await storage.deleteMessages(ids(messages));
  assert.equal(await items('exact'), 0);
});

function revived(name, value) {
  return name === 'createdAt' ? new Date(value) : value;
}

test('a message that is saved again is replaced in its place, or moves to another thread', async () => {
  const messages = ['1', '2', '3'].map((n) => messageOf(`again-${n}`, 'again', 0));
  await storage.saveThread({ thread: threadOf('again') });
  await storage.saveMessages({ messages });
  const changed = messageOf('again-2', 'again', 0, 'Something else is said here.');
  await storage.saveMessages({ messages: [messageOf('again-4', 'again', 0), changed, messages[0]] });
  const { messages: found } = await storage.listMessages({ threadId: 'again' });
  assert.deepEqual(found, [messages[0], changed, messages[2], messageOf('again-4', 'again', 0)]);
  assert.deepEqual(await contents('again'), found.map(({ content }) => content.parts[0].text));
  const moved = messageOf('again-2', 'again, too', 0, 'It is said over there.');
  await storage.saveMessages({ messages: [messageOf('again-5', 'again, too', 0), moved] });
  assert.deepEqual(ids((await storage.listMessages({ threadId: 'again' })).messages), ['again-1', 'again-3', 'again-4']);
  assert.deepEqual((await storage.listMessages({ threadId: ['again, too'] })).messages, [messageOf('again-5', 'again, too', 0), moved]);
  assert.ok(!(await contents('again')).includes('Something else is said here.'));
});

test('updates of messages', async () => {
  await storage.saveThread({ thread: threadOf('updates') });
  const before = messageOf('update-1', 'updates', 1);
  before.content.metadata = { a: 1, b: 1 };
  await storage.saveMessages({ messages: [before] });
  const [updated, ...rest] = await storage.updateMessages({ messages: [{ id: 'none', role: 'user' }, { id: 'update-1', role: 'assistant', content: { metadata: { b: 2 } } }] });
  assert.deepEqual(rest, []);
  assert.deepEqual(updated, { ...before, role: 'assistant', content: { ...before.content, metadata: { a: 1, b: 2 } } });
  assert.deepEqual((await storage.listMessagesById({ messageIds: ['update-1'] })).messages, [updated]);
});

test('whatever changes messages changes when their thread was updated', async () => {
  const message = messageOf('touch-1', 'touched', 1);
  for (const change of [
    () => storage.saveMessages({ messages: [message] }),
    () => storage.updateMessages({ messages: [{ id: 'touch-1', role: 'assistant' }] }),
    () => storage.deleteMessages(['touch-1']),
  ]) {
    const thread = threadOf('touched');
    await storage.saveThread({ thread });
    await change();
    assert.ok((await storage.getThreadById({ threadId: 'touched' })).updatedAt > thread.updatedAt, String(change));
  }
});

test('what is not a message of a thread is refused', async () => {
  for (const missing of ['threadId', 'resourceId']) {
    const message = { ...messageOf('refused', 'refused', 1), [missing]: undefined };
    await assert.rejects(storage.saveMessages({ messages: [messageOf('refused-1', 'refused', 1), message] }), InvalidInput);
  }
  assert.equal(await items('refused'), 0);
  await assert.rejects(storage.listMessages({ threadId: ' ' }), InvalidInput);
  await assert.rejects(storage.listMessages({ threadId: 'refused', page: -1 }));
  await assert.rejects(storage.listMessages({ threadId: 'refused', perPage: -1 }));
});

/** Random numbers that are the same in every run (mulberry32). */
function numbers(seed) {
  return (below) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

test('pages are those of the storage of Mastra in memory, whatever is asked', async () => {
  const random = numbers(7);
  const own = new MemorandaMemoryStorage({ memoranda, name: 'pages', observe: false });
  const theirs = await new InMemoryStore().getStore('memory');
  const order = [...Array(60).keys()].sort(() => random(3) - 1); // mostly as they were said
  const messages = order.map((n) => messageOf(`page-${n}`, `pages-${n % 2}`, n, undefined, { resourceId: `reader-${n % 3 ? 0 : 1}` }));
  messages.forEach(({ content }, i) => (content.metadata = { third: i % 3 === 0 }));
  for (let i = 0; i < messages.length; i += 7) {
    for (const one of [own, theirs]) await one.saveMessages({ messages: structuredClone(messages.slice(i, i + 7)) });
  }
  const deleted = [3, 17, 31].map((n) => `page-${n}`);
  for (const one of [own, theirs]) await one.deleteMessages(deleted);
  for (let turn = 0; turn < 150; turn++) {
    const perPage = [0, 1, 2, 5, 20, 100, undefined, false][random(8)];
    const day = (n) => new Date(START + n * 60_000);
    const include = random(4) ? undefined : [1, 2].map(() => ({
      id: `page-${random(62)}`, withPreviousMessages: random(4), withNextMessages: random(4),
    }));
    const asked = {
      perPage, page: perPage === false ? 0 : random(4), include,
      orderBy: { field: 'createdAt', direction: ['ASC', 'DESC'][random(2)] },
      filter: {
        dateRange: random(2) ? undefined : { start: day(random(30)), end: day(30 + random(30)), startExclusive: !random(2), endExclusive: !random(2) },
        metadata: random(3) ? undefined : { third: !random(2) },
      },
    };
    const resourceId = random(2) ? undefined : `reader-${random(2)}`;
    const threadId = random(3) ? `pages-${random(2)}` : ['pages-0', 'pages-1'];
    const isOfResource = !random(4);
    const pages = [];
    for (const one of [own, theirs]) {
      const page = isOfResource
        ? await one.listMessagesByResourceId({ ...asked, resourceId: 'reader-0' })
        : await one.listMessages({ ...asked, threadId, resourceId });
      const isOpen = include || perPage === 0; // storages of Mastra differ here
      pages.push({ ...page, ...(isOpen ? { hasMore: null, total: null } : {}) });
    }
    assert.deepEqual(pages[0], pages[1], JSON.stringify({ ...asked, threadId, resourceId, isOfResource }));
  }
});

test('a page is exact when messages of the same moment are written late', async () => {
  const own = new MemorandaMemoryStorage({ memoranda, name: 'late', observe: false });
  const minutes = [5, 5, 1, 5, 9, 5, 2, 5];
  await own.saveMessages({ messages: minutes.map((minute, i) => messageOf(`late-${i}`, 'late', minute)) });
  const all = ['late-2', 'late-6', 'late-0', 'late-1', 'late-3', 'late-5', 'late-7', 'late-4'];
  for (const [direction, expected] of [['ASC', all], ['DESC', [...all].reverse()]]) {
    for (const perPage of [1, 2, 3, 8]) {
      const found = [];
      for (let page = 0; page * perPage < all.length; page++) {
        const answer = await own.listMessages({ threadId: 'late', perPage, page, orderBy: { field: 'createdAt', direction }, includeTotal: false });
        assert.equal(answer.hasMore, (page + 1) * perPage < all.length);
        found.push(...ids(answer.messages));
      }
      assert.deepEqual(found, expected, `${direction} ${perPage}`);
    }
  }
  const include = [{ id: 'late-3', withPreviousMessages: 3, withNextMessages: 2 }];
  assert.deepEqual(ids((await own.listMessages({ threadId: 'late', perPage: 0, include })).messages), all.slice(1, 7));
});

// --- what Memoranda remembers ----------------------------------------------------------------------------

test('what users and assistants say is observed in the session of the thread', async () => {
  const thread = threadOf('said', 'reza');
  const own = (id, minute, text, more) => messageOf(id, 'said', minute, text, { resourceId: 'reza', ...more });
  await storage.saveThread({ thread });
  await storage.saveMessages({ messages: [
    own('said-1', 1, 'I keep bees behind the greenhouse.'),
    own('said-2', 2, 'How many hives?', { role: 'assistant' }),
    own('said-3', 3, 'You are a beekeeper.', { role: 'system' }),
    own('said-4', 4, ''),
  ] });
  const { data } = await memoranda.sessions.messages('said');
  assert.deepEqual(data.map(({ role, user_id: user, content }) => [role, user, content]), [
    ['user', 'reza', 'I keep bees behind the greenhouse.'], ['assistant', 'reza', 'How many hives?'],
  ]);
  assert.equal(new Date(data[0].occurred_at).getTime(), START + 60_000);
  const found = async () => (await memoranda.memories.search({ query: 'bees greenhouse', scopes: ['user:reza'] })).results.map(({ memory }) => memory.content);
  assert.equal((await found())[0], 'I keep bees behind the greenhouse.');
  assert.match((await memoranda.context({ query: 'Where are the bees?', scopes: ['session:said'] })).text, /behind the greenhouse/);
  await storage.updateMessages({ messages: [{ id: 'said-2', content: { parts: [] } }] });
  await storage.saveMessages({ messages: [own('said-1', 1, 'I keep geese behind the greenhouse.'), own('said-4', 4, 'Seven.')] });
  assert.deepEqual(await contents('said'), ['I keep geese behind the greenhouse.', 'Seven.']);
  await storage.deleteMessages(['said-1']);
  assert.deepEqual(await contents('said'), ['Seven.']);
  assert.ok(!(await found()).some((content) => content.includes('greenhouse')));
});

test('nothing is observed where that is switched off', async () => {
  const silent = new MemorandaMemoryStorage({ memoranda, name: 'silent', observe: false });
  await silent.saveMessages({ messages: [messageOf('silent-1', 'silent', 1)] });
  await assert.rejects(memoranda.sessions.get('silent'), NotFound);
  await memoranda.observe({ session_id: 'silent', messages: [{ content: 'This was said elsewhere.' }] });
  await silent.deleteThread({ threadId: 'silent' });
  assert.deepEqual(await contents('silent'), ['This was said elsewhere.']);
});

test('forgetting a user or a session erases threads', async () => {
  for (const id of ['forget-1', 'forget-2', 'keep']) {
    const resourceId = id === 'keep' ? 'noor' : 'ivo';
    await storage.saveThread({ thread: threadOf(id, resourceId) });
    await storage.saveMessages({ messages: [messageOf(`${id}-m`, id, 1, 'x'.repeat(50_000), { resourceId })] });
  }
  await storage.updateResource({ resourceId: 'ivo', workingMemory: 'tea' });
  await memoranda.memories.forget({ scopes: ['session:forget-1'] });
  assert.deepEqual(ids((await storage.listThreads({ filter: { resourceId: 'ivo' } })).threads), ['forget-2']);
  await memoranda.memories.forget({ scopes: ['user:ivo'] });
  assert.deepEqual((await storage.listThreads({ filter: { resourceId: 'ivo' } })).threads, []);
  assert.equal(await storage.getResourceById({ resourceId: 'ivo' }), null);
  assert.equal((await storage.listMessages({ threadId: 'keep' })).messages.length, 1);
});

test('any text is the id of a thread', async () => {
  for (const id of ['a/b', 'a%2Fb', 'with space?', 'ü:#&', 'session:x', '.', '..']) {
    await storage.saveThread({ thread: threadOf(id) });
    await storage.saveMessages({ messages: [messageOf(`${id}-1`, id, 1), messageOf(`${id}-2`, id, 2)] });
    await storage.deleteMessages([`${id}-1`]);
  }
  for (const id of ['a/b', 'a%2Fb', 'with space?', 'ü:#&', 'session:x', '.', '..']) {
    assert.deepEqual(ids((await storage.listMessages({ threadId: id })).messages), [`${id}-2`]);
    await storage.deleteThread({ threadId: id });
    assert.equal(await storage.getThreadById({ threadId: id }), null);
  }
  await assert.rejects(memoranda.sessions.get('a%2Fb'), NotFound);
});

// --- resources, copies, several storages -----------------------------------------------------------------

test('working memory of a resource', async () => {
  assert.equal(await storage.getResourceById({ resourceId: 'lena' }), null);
  await Promise.all([
    storage.updateResource({ resourceId: 'lena', workingMemory: '# Lena' }),
    storage.updateResource({ resourceId: 'lena', metadata: { a: 1 } }),
    storage.updateResource({ resourceId: 'lena', metadata: { b: { c: null } } }),
  ]);
  const { createdAt, updatedAt, ...found } = await storage.getResourceById({ resourceId: 'lena' });
  assert.deepEqual(found, { id: 'lena', workingMemory: '# Lena', metadata: { a: 1, b: { c: null } } });
  assert.ok(createdAt instanceof Date && updatedAt >= createdAt);
  const saved = { id: 'lena', workingMemory: 'x'.repeat(100_000), metadata: {}, createdAt: new Date(START), updatedAt: new Date(START) };
  await storage.saveResource({ resource: saved });
  assert.deepEqual(await storage.getResourceById({ resourceId: 'lena' }), saved);
});

test('a copy is independent, and a thread goes to another resource with its messages', async () => {
  await storage.saveThread({ thread: threadOf('source') });
  const messages = [1, 2, 3].map((n) => messageOf(`source-${n}`, 'source', n));
  await storage.saveMessages({ messages });
  const { thread, clonedMessages } = await storage.cloneThread({ sourceThreadId: 'source', newThreadId: 'copy', options: { messageLimit: 2 } });
  assert.deepEqual([thread.title, thread.resourceId, thread.metadata.clone.sourceThreadId], ['Clone of Title of source', 'user of source', 'source']);
  assert.deepEqual(clonedMessages.map(({ content, createdAt }) => [content, createdAt]), messages.slice(1).map(({ content, createdAt }) => [content, createdAt]));
  await assert.rejects(storage.copyThread({ sourceThreadId: 'source', newThreadId: 'copy' }));
  await assert.rejects(storage.copyThread({ sourceThreadId: 'none' }), NotFound);
  await storage.deleteThread({ threadId: 'source' });
  assert.deepEqual((await storage.listMessages({ threadId: 'copy' })).messages, clonedMessages);

  await storage.saveThread({ thread: threadOf('given') });
  await storage.saveMessages({ messages: [messageOf('given-1', 'given', 1)] });
  await storage.updateThreadResourceId({ threadId: 'given', resourceId: 'taker' });
  assert.deepEqual(ids((await storage.listThreads({ filter: { resourceId: 'taker' } })).threads), ['given']);
  assert.equal((await storage.listMessages({ threadId: 'given', resourceId: 'taker' })).total, 1);
  assert.deepEqual((await memoranda.sessions.messages('given')).data.map(({ user_id: user }) => user), ['taker']);
});

test('storages of other names, and users, do not mix', async () => {
  const other = new MemorandaMemoryStorage({ memoranda, name: 'tests of others', observe: false });
  await storage.saveThread({ thread: threadOf('mixed', 'one') });
  await storage.saveMessages({ messages: [messageOf('mixed-1', 'mixed', 1, 'Mine.', { resourceId: 'one' })] });
  await other.saveThread({ thread: threadOf('mixed', 'two') });
  await other.saveMessages({ messages: [messageOf('mixed-1', 'mixed', 1, 'Theirs.', { resourceId: 'two' }), messageOf('mixed-2', 'mixed', 2)] });
  await other.updateResource({ resourceId: 'one', workingMemory: 'Theirs.' });
  assert.equal((await storage.getThreadById({ threadId: 'mixed' })).resourceId, 'one');
  assert.deepEqual((await storage.listMessages({ threadId: 'mixed' })).messages.map(({ content }) => content.parts[0].text), ['Mine.']);
  assert.equal((await storage.listMessages({ threadId: 'mixed', resourceId: 'two' })).total, 0);
  const include = [{ id: 'mixed-1' }];
  assert.deepEqual((await storage.listMessages({ threadId: 'mixed', resourceId: 'two', include })).messages, []);
  assert.equal(await storage.getResourceById({ resourceId: 'one' }), null);
  await other.dangerouslyClearAll();
  assert.equal((await other.listThreads({})).total, 0);
  assert.equal((await storage.listMessages({ threadId: 'mixed' })).total, 1);
});

// --- with Mastra -----------------------------------------------------------------------------------------

function memoryOf(options) {
  const vector = new MemorandaVector({ memoranda, name: 'tests' });
  return new Memory({ storage: new MemorandaStorage({ memoranda, name: 'tests' }), vector, embedder: embeddingModel(memoranda), options });
}

function agentOf(model, memory, tools = {}) {
  return new Agent({ id: 'guide', name: 'guide', instructions: 'You plan trips.', model, memory, tools });
}

const textsOf = (prompt) => prompt.flatMap(({ content }) => (typeof content === 'string' ? [content] : content.map(({ text }) => text ?? '')));

test('an agent has its history, streamed or not, with calls of tools', async () => {
  const look = createTool({ id: 'look', description: 'Looks', execute: async () => ({ tram: 28 }) });
  const model = scripted(['Lisbon it is.', { tool: 'look', input: { at: 'trams' } }, 'Take tram 28.', 'As I said: 28.']);
  const where = { memory: { thread: 'agent', resource: 'ana' } };
  await agentOf(model, memoryOf({ lastMessages: 10, semanticRecall: false })).generate('I go to Lisbon.', where);
  const stream = await agentOf(model, memoryOf({ lastMessages: 10, semanticRecall: false }), { look }).stream('Which tram?', where);
  assert.equal(await stream.text, 'Take tram 28.');
  const memory = memoryOf({ lastMessages: 10, semanticRecall: false });
  await agentOf(model, memory, { look }).generate('Which one again?', where);
  const texts = textsOf(model.prompts.at(-1)).filter(Boolean);
  assert.deepEqual(texts, ['You plan trips.', 'I go to Lisbon.', 'Lisbon it is.', 'Which tram?', 'Take tram 28.', 'Which one again?']);
  assert.ok(JSON.stringify(model.prompts.at(-1)).includes('"tram":28'));
  const { messages } = await memory.recall({ threadId: 'agent', resourceId: 'ana' });
  assert.deepEqual(messages.map(({ role }) => role), ['user', 'assistant', 'user', 'assistant', 'user', 'assistant']);
  assert.deepEqual(await contents('agent'), ['I go to Lisbon.', 'Lisbon it is.', 'Which tram?', 'Take tram 28.', 'Which one again?', 'As I said: 28.']);
});

test('working memory, of a thread or of a resource, is in the next prompts', async () => {
  for (const scope of ['thread', 'resource']) {
    const options = { semanticRecall: false, workingMemory: { enabled: true, scope } };
    const model = scripted([{ tool: 'updateWorkingMemory', input: { memory: '# Bo\n- likes port' } }, 'Noted.', 'Hello.', 'Hello.']);
    const own = { thread: `${scope} 1`, resource: `bo of ${scope}` };
    await agentOf(model, memoryOf(options)).generate('I like port.', { memory: own });
    await agentOf(model, memoryOf(options)).generate('Hello.', { memory: own });
    assert.ok(JSON.stringify(model.prompts.at(-1)).includes('likes port'));
    await agentOf(model, memoryOf(options)).generate('Hello.', { memory: { ...own, thread: `${scope} 2` } });
    assert.equal(JSON.stringify(model.prompts.at(-1)).includes('likes port'), scope === 'resource');
  }
});

test('semantic recall finds messages of other threads of the resource, with their neighbours', async () => {
  const options = { lastMessages: 1, semanticRecall: { topK: 1, messageRange: 1, scope: 'resource' } };
  const model = scripted(['The herons nest there.', 'Ask the warden.', 'Answer.', 'Answer.']);
  const memory = memoryOf(options);
  await agentOf(model, memory).generate('Who nests at the lagoon?', { memory: { thread: 'recall-1', resource: 'kim' } });
  await agentOf(model, memory).generate('Whom do I ask about boats?', { memory: { thread: 'recall-1', resource: 'kim' } });
  await agentOf(model, memory).generate('Who nests at the lagoon?', { memory: { thread: 'recall-2', resource: 'kim' } });
  assert.ok(JSON.stringify(model.prompts.at(-1)).includes('The herons nest there.'));
  await agentOf(model, memory).generate('Who nests at the lagoon?', { memory: { thread: 'recall-3', resource: 'somebody else' } });
  assert.ok(!JSON.stringify(model.prompts.at(-1)).includes('The herons nest there.'));
  const vectors = () => memoranda.memories.count({ kinds: ['item'], scopes: ['channel:tests/memory_messages_64'], filters: { thread_id: 'recall-1' } });
  assert.ok((await vectors()) > 0);
  await memory.deleteThread('recall-1');
  for (let tries = 0; tries < 50 && (await vectors()) > 0; tries++) await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(await vectors(), 0);
});

test('Mastra takes the storage, alone or for one domain of another', async () => {
  const whole = new MemorandaStorage({ memoranda, name: 'tests' });
  assert.ok((await whole.getStore('memory')) instanceof MemorandaMemoryStorage);
  assert.equal(await whole.getStore('workflows'), undefined);
  const model = scripted(['Hello.', 'Hello again.']);
  for (const given of [whole, new MastraCompositeStore({ id: 'mixed', default: new InMemoryStore(), domains: { memory: storage } })]) {
    const mastra = new Mastra({ storage: given, agents: { guide: agentOf(model, new Memory({ options: { semanticRecall: false } })) } });
    await mastra.getAgent('guide').generate('Hello.', { memory: { thread: 'in mastra', resource: 'uma' } });
  }
  assert.equal((await storage.listMessages({ threadId: 'in mastra' })).total, 4);
});
