// The AI SDK's memory against a server at MEMORANDA_URL. The model is one of the SDK's own mocks.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { generateText, stepCountIs, streamText, wrapLanguageModel } from 'ai';
import { MockLanguageModelV3, simulateReadableStream } from 'ai/test';
import { InvalidInput, Memoranda, NotFound } from 'memoranda';
import { memoryMiddleware, memoryTools } from 'memoranda/ai';

const memoranda = new Memoranda({ baseURL: process.env.MEMORANDA_URL });
const gone = new Memoranda({ baseURL: 'http://127.0.0.1:2' });
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const stop = { unified: 'stop', raw: 'stop' };

/** A model that says these texts, or calls these tools, and keeps what it was asked. */
function modelThatSays(...turns) {
  const contents = turns.map((turn) => (typeof turn === 'string' ? [{ type: 'text', text: turn }] : [turn]));
  const asked = [];
  const model = new MockLanguageModelV3({
    doGenerate: async (params) => {
      asked.push(params);
      const content = contents.shift();
      const finishReason = content[0].type === 'tool-call' ? { unified: 'tool-calls', raw: 'tool_calls' } : stop;
      return { content, finishReason, usage, warnings: [] };
    },
    doStream: async (params) => {
      asked.push(params);
      const text = contents.shift()[0].text;
      const deltas = text.split(/(?= )/).map((delta) => ({ type: 'text-delta', id: '1', delta }));
      const chunks = [
        { type: 'stream-start', warnings: [] }, { type: 'text-start', id: '1' }, ...deltas, { type: 'text-end', id: '1' },
        { type: 'finish', finishReason: stop, usage },
      ];
      return { stream: simulateReadableStream({ chunks, initialDelayInMs: null, chunkDelayInMs: null }) };
    },
  });
  return { model, asked };
}

function remembering(options, ...turns) {
  const { model, asked } = modelThatSays(...turns);
  return { model: wrapLanguageModel({ model, middleware: memoryMiddleware(options.memoranda ?? memoranda, options) }), asked };
}

async function saidIn(session) {
  return (await memoranda.sessions.messages(session)).data.map((message) => `${message.role}: ${message.content}`);
}

function systemOf({ prompt }) {
  return prompt.filter((message) => message.role === 'system').map((message) => message.content);
}

test('what was said in one conversation is told in the next', async () => {
  const first = remembering({ sessionId: 'ai-1', userId: 'ai-ada' }, 'I will remember.');
  await generateText({ model: first.model, prompt: 'My hamster is called Brutus.' });
  assert.deepEqual(systemOf(first.asked[0]), []);
  assert.deepEqual(await saidIn('ai-1'), ['user: My hamster is called Brutus.', 'assistant: I will remember.']);

  const next = remembering({ sessionId: 'ai-2', userId: 'ai-ada' }, 'Brutus.');
  const messages = [{ role: 'user', content: 'What is my hamster called?' }];
  const result = await generateText({ model: next.model, system: 'Be brief.', messages });
  assert.equal(result.text, 'Brutus.');
  const [rules, context] = systemOf(next.asked[0]);
  assert.equal(rules, 'Be brief.');
  assert.match(context, /My hamster is called Brutus\./);
  assert.equal(next.asked[0].prompt.at(-1).role, 'user');
  const { evidence, memories, degraded } = result.providerMetadata.memoranda;
  assert.ok(['strong', 'weak', 'none'].includes(evidence));
  assert.ok(memories.length > 0);
  assert.deepEqual(degraded, []);
});

test('a streamed answer is kept when it is complete', async () => {
  const { model } = remembering({ sessionId: 'ai-stream' }, 'It is in the shed.');
  const result = streamText({ model, prompt: 'Where is the ladder?' });
  let text = '';
  for await (const delta of result.textStream) text += delta;
  assert.equal(text, 'It is in the shed.');
  assert.deepEqual(await saidIn('ai-stream'), ['user: Where is the ladder?', 'assistant: It is in the shed.']);
  assert.ok((await result.providerMetadata).memoranda.evidence);
});

/** A model whose streamed answer is these parts, with what is remembered. */
function streaming(options, ...parts) {
  const chunks = [{ type: 'stream-start', warnings: [] }, ...parts];
  const doStream = async () => ({ stream: simulateReadableStream({ chunks, initialDelayInMs: null, chunkDelayInMs: null }) });
  const doGenerate = async () => ({ content: [{ type: 'text', text: 'half an ans' }], finishReason: parts.at(-1).finishReason, usage, warnings: [] });
  const model = new MockLanguageModelV3({ doStream, doGenerate });
  return wrapLanguageModel({ model, middleware: memoryMiddleware(memoranda, options) });
}

test('an answer that broke off is not kept', async () => {
  const half = [{ type: 'text-start', id: 'a' }, { type: 'text-delta', id: 'a', delta: 'half an ans' }];
  const failed = { type: 'finish', finishReason: { unified: 'error', raw: 'x' }, usage };
  const onError = () => {};
  for (const end of [[{ type: 'error', error: new Error('x') }, { ...failed, finishReason: stop }], [failed]]) {
    const model = streaming({ sessionId: 'ai-broken' }, ...half, ...end);
    for await (const _ of streamText({ model, prompt: 'What about bees?', onError }).fullStream);
  }
  await generateText({ model: streaming({ sessionId: 'ai-broken' }, failed), prompt: 'What about bees?' });
  await assert.rejects(memoranda.sessions.get('ai-broken'), NotFound);
});

test('blocks of text that come at the same time are kept apart', async () => {
  const delta = (id, text) => ({ type: 'text-delta', id, delta: text });
  const [a, b] = ['a', 'b'].map((id) => ({ type: 'text-start', id }));
  const finish = { type: 'finish', finishReason: stop, usage };
  const parts = [a, delta('a', 'Hello '), b, delta('b', 'Second '), delta('a', 'world'), delta('b', 'block'), finish];
  const { textStream } = streamText({ model: streaming({ sessionId: 'ai-blocks' }, ...parts), prompt: 'Say two things.' });
  for await (const _ of textStream);
  assert.deepEqual(await saidIn('ai-blocks'), ['user: Say two things.', 'assistant: Hello world\n\nSecond block']);
});

test('a conversation that is sent again is kept once, and not told again', async () => {
  const messages = [
    { role: 'user', content: 'The saw is blue.' },
    { role: 'assistant', content: 'Noted.' },
    { role: 'user', content: 'Which colour has the saw?' },
  ];
  const options = { sessionId: 'ai-again', context: { scopes: ['session:ai-again'] } };
  await generateText({ model: remembering(options, 'Noted.').model, messages: messages.slice(0, 1) });
  const { model, asked } = remembering(options, 'Blue.', 'Blue.');
  await generateText({ model, messages });
  await generateText({ model, messages });
  const all = ['user: The saw is blue.', 'assistant: Noted.', 'user: Which colour has the saw?', 'assistant: Blue.'];
  assert.deepEqual(await saidIn('ai-again'), all);
  assert.deepEqual(asked.flatMap(systemOf), []);
});

test('the place may be named in a call', async () => {
  const { model, asked } = remembering({}, 'Hello.', 'Bye.');
  const providerOptions = { memoranda: { sessionId: 'ai-call' }, other: { a: 1 } };
  await generateText({ model, prompt: 'Hello there.', providerOptions });
  assert.deepEqual(asked[0].providerOptions, { other: { a: 1 } });
  assert.deepEqual(await saidIn('ai-call'), ['user: Hello there.', 'assistant: Hello.']);
  await assert.rejects(generateText({ model, prompt: 'x' }), InvalidInput);
  const wrong = { memoranda: { session: 'ai-call' } };
  await assert.rejects(generateText({ model, prompt: 'x', providerOptions: wrong }), /memoranda\.session: is no option/);
  await generateText({ model, prompt: 'Not kept.', providerOptions: { memoranda: { observe: false } } });
  const found = await memoranda.memories.search({ query: 'Not kept.', mode: 'words' });
  assert.ok(found.results.every((hit) => hit.memory.content !== 'Not kept.'));
});

test('a memory that fails is an error, or is reported', async () => {
  const strict = remembering({ memoranda: gone, sessionId: 'ai-gone' }, 'Never.');
  await assert.rejects(generateText({ model: strict.model, prompt: 'x', maxRetries: 0 }), /did not answer/);
  const failed = [];
  const onError = (error, during) => failed.push([error.name, during]);
  const { model } = remembering({ memoranda: gone, sessionId: 'ai-gone', onError }, 'Still here.');
  assert.equal((await generateText({ model, prompt: 'x' })).text, 'Still here.');
  assert.deepEqual(failed, [['StorageError', 'context'], ['StorageError', 'observe']]);
});

test('a long message or an odd one is asked and kept', async () => {
  const long = remembering({ sessionId: 'ai-long' }, 'Long.', 'Longer.');
  await generateText({ model: long.model, prompt: 'What stands in this document? '.repeat(2000) });
  await generateText({ model: long.model, prompt: '\u{1f41d}'.repeat(300_000) });
  const [first, , bees] = await saidIn('ai-long');
  assert.equal(first, `user: ${'What stands in this document? '.repeat(2000)}`);
  assert.equal(bees, `user: ${'\u{1f41d}'.repeat(1 << 18)}`); // the first MiB
  const odd = remembering({ sessionId: 'ai-odd' }, 'No\0ted \ud83d.', 'So.');
  const messages = [{ role: 'user', content: 'Where is\0 it? \ud83d' }];
  const { text } = await generateText({ model: odd.model, messages });
  assert.equal(text, 'No\0ted \ud83d.');
  messages.push({ role: 'assistant', content: text }, { role: 'user', content: 'And now?' });
  await generateText({ model: odd.model, messages });
  const kept = ['user: Where is it? \ufffd', 'assistant: Noted \ufffd.', 'user: And now?', 'assistant: So.'];
  assert.deepEqual(await saidIn('ai-odd'), kept);
});

test('a call that is aborted ends while memory is asked', { timeout: 10_000 }, async () => {
  const hanging = createServer(() => {});
  await new Promise((resolve) => hanging.listen(0, '127.0.0.1', resolve));
  const silent = new Memoranda({ baseURL: `http://127.0.0.1:${hanging.address().port}` });
  const failed = [];
  const onError = (error) => failed.push(error);
  const { model, asked } = remembering({ memoranda: silent, sessionId: 'ai-abort', onError }, 'Never.');
  const call = generateText({ model, prompt: 'x', abortSignal: AbortSignal.timeout(50) });
  await assert.rejects(call, { name: 'TimeoutError' });
  assert.deepEqual([failed, asked], [[], []]);
  hanging.closeAllConnections();
  hanging.close();
});

test('a model remembers and recalls by tools', async () => {
  const { recall, remember } = memoryTools(memoranda, { userId: 'ai-tools', agentId: 'helper' });
  const call = (toolName, input) => ({ type: 'tool-call', toolCallId: toolName, toolName, input: JSON.stringify(input) });
  const turns = [call('remember', { content: 'The user drinks tea.', tags: ['taste'] }), call('recall', { query: 'What does the user drink?' }), 'Tea.'];
  const { model } = remembering({ sessionId: 'ai-steps', userId: 'ai-tools' }, ...turns);
  const result = await generateText({ model, prompt: 'I drink tea. What do I drink?', tools: { recall, remember }, stopWhen: stepCountIs(3) });
  const outputs = result.steps.flatMap((step) => step.toolResults).map((part) => part.output);
  assert.equal(outputs[0].created, true);
  assert.ok(outputs[1].results.some((one) => one.id === outputs[0].id && one.text === 'The user drinks tea.'));
  const memory = await memoranda.memories.get(outputs[0].id);
  assert.deepEqual([memory.user_id, memory.agent_id, memory.tags], ['ai-tools', 'helper', ['taste']]);
  assert.deepEqual(await saidIn('ai-steps'), ['user: I drink tea. What do I drink?', 'assistant: Tea.']);
});

test('a tool forgets only what is the user\'s', async () => {
  const context = { toolCallId: '1', messages: [] };
  const other = await memoranda.memories.add({ content: 'Not yours.', user_id: 'ai-other' });
  const { forget } = memoryTools(memoranda, { userId: 'ai-mine' });
  await assert.rejects(forget.execute({ id: other.id }, context), NotFound);
  const mine = await memoranda.memories.add({ content: 'Mine.', user_id: 'ai-mine' });
  assert.deepEqual(await forget.execute({ id: mine.id }, context), { id: mine.id, forgotten: true });
  await assert.rejects(memoranda.memories.get(mine.id), NotFound);
});

test('a tool searches documents', async () => {
  const store = await memoranda.stores.create({ name: 'ai' });
  const file = await memoranda.stores.upload(store.id, { name: 'roof.md', data: 'The roof was tiled in 1954.' });
  await memoranda.stores.waitFile(store.id, file.id);
  const { searchDocuments } = memoryTools(memoranda, { stores: [store.id] });
  const found = await searchDocuments.execute({ query: 'When was the roof tiled?' }, { toolCallId: '1', messages: [] });
  assert.deepEqual(found.results.map((one) => [one.filename, one.text]), [['roof.md', 'The roof was tiled in 1954.']]);
});
