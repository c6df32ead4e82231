// The cases of the AI SDK. AI and PROVIDER name the versions to load.
import assert from 'node:assert/strict';
import { z } from 'zod';
import { MCP, PIXEL, STORE, URL, listed, play, refused } from './cases.mjs';

const { embed, generateText, stepCountIs, streamText, tool, Output, APICallError } = await import(
  process.env.AI ?? 'ai'
);
const { createOpenAI } = await import(process.env.PROVIDER ?? '@ai-sdk/openai');

globalThis.AI_SDK_LOG_WARNINGS = false; // they go to stdout
const sent = new Set(); // the types of input items, each with the question that was asked
const listening = (url, asked) => {
  const { input } = JSON.parse(asked.body);
  const question = [].concat(input).findLast(item => item.role === 'user')?.content[0].text;
  for (const item of input) sent.add(`${item.type}: ${question}`);
  return fetch(url, asked);
};
const openai = createOpenAI({ baseURL: `${URL}/v1`, apiKey: 'none', fetch: listening });
const model = openai('scripted');
const common = { model, maxRetries: 0, onError() {} };
const weather = tool({
  description: 'The weather of a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `sunny in ${city}`,
});
const search = () => openai.tools.fileSearch({ vectorStoreIds: [STORE], maxNumResults: 3 });
const with_results = { providerOptions: { openai: { include: ['file_search_call.results'] } } };
const user = content => ({ role: 'user', content });

// The parts of a whole stream; the first error in it is thrown.
async function parts(stream) {
  const all = await listed(stream.fullStream);
  const failed = all.find(part => part.type === 'error');
  if (failed) throw failed.error;
  return all;
}

await play({
  async plain() {
    const { text, usage, finishReason, response } = await generateText({ ...common, prompt: 'Where is the kettle?' });
    assert.equal(text, 'It is in the kitchen.');
    assert.equal(finishReason, 'stop');
    assert.ok(usage.outputTokens > 0);
    assert.ok(response.id.startsWith('resp_'));
  },

  async stream() {
    const stream = streamText({ ...common, system: 'Be kind.', prompt: 'Where is the kettle?' });
    const deltas = await listed(stream.textStream);
    assert.ok(deltas.length > 1);
    assert.equal(deltas.join(''), 'It is in the kitchen.');
    assert.equal(await stream.finishReason, 'stop');
  },

  async messages() {
    const first = [user('My name is Ada, messages.')];
    const { response } = await generateText({ ...common, messages: first });
    const messages = [...first, ...response.messages, user('What is my name, messages?')];
    assert.equal((await generateText({ ...common, messages })).text, 'You are Ada.');
    assert.ok(sent.has('item_reference: What is my name, messages?'));
    const streamed = streamText({ ...common, messages });
    assert.equal((await listed(streamed.textStream)).join(''), 'You are Ada.');
  },

  async chain() {
    const first = await generateText({ ...common, prompt: 'My name is Ada, chain.' });
    const { responseId } = first.providerMetadata.openai;
    const second = await generateText({
      ...common, prompt: 'What is my name, chain?', providerOptions: { openai: { previousResponseId: responseId } },
    });
    assert.equal(second.text, 'You are Ada.');
  },

  async conversation() {
    const made = await fetch(`${URL}/v1/conversations`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}',
    });
    const providerOptions = { openai: { conversation: (await made.json()).id } };
    await generateText({ ...common, prompt: 'My name is Ada, conversation.', providerOptions });
    const second = await generateText({ ...common, prompt: 'What is my name, conversation?', providerOptions });
    assert.equal(second.text, 'You are Ada.');
  },

  async not_stored() {
    const providerOptions = { openai: { store: false } };
    const first = [user('My name is Ada, not stored.')];
    const { response } = await generateText({ ...common, messages: first, providerOptions });
    const messages = [...first, ...response.messages, user('What is my name, not stored?')];
    assert.equal((await generateText({ ...common, messages, providerOptions })).text, 'You are Ada.');
    assert.ok(!sent.has('item_reference: What is my name, not stored?'));
  },

  async function_call() {
    const made = await generateText({
      ...common, prompt: 'What is the weather?', tools: { get_weather: weather }, stopWhen: stepCountIs(3),
    });
    assert.equal(made.steps.length, 2);
    assert.equal(made.text, 'It is sunny in Paris.');
  },

  async function_call_streamed() {
    const stream = streamText({
      ...common, prompt: 'The weather in two cities?', tools: { get_weather: weather }, stopWhen: stepCountIs(3),
    });
    const all = await parts(stream);
    const calls = all.filter(part => part.type === 'tool-call');
    assert.deepEqual(calls.map(call => call.input.city), ['Paris', 'Rome']);
    assert.ok(all.some(part => part.type === 'tool-input-delta'));
    assert.equal(await stream.text, 'Sunny in both.');
  },

  async chat_completions() {
    const asked = { ...common, model: createOpenAI({ baseURL: `${URL}/v1`, apiKey: 'none' }).chat('scripted') };
    const first = [user('My name is Ada, chatting.')];
    const { response, usage } = await generateText({ ...asked, messages: first });
    assert.ok(usage.outputTokens > 0);
    const messages = [...first, ...response.messages, user('What is my name, chatting?')];
    assert.equal((await generateText({ ...asked, messages })).text, 'You are Ada.');
    const deltas = await listed(streamText({ ...asked, messages }).textStream);
    assert.ok(deltas.length > 1);
    assert.equal(deltas.join(''), 'You are Ada.');
    const tools = { tools: { get_weather: weather }, stopWhen: stepCountIs(3) };
    const whole = await generateText({ ...asked, ...tools, prompt: 'The weather in two cities?' });
    assert.equal(whole.text, 'Sunny in both.');
    const stream = streamText({ ...asked, ...tools, prompt: 'The weather in two cities?' });
    const calls = (await parts(stream)).filter(part => part.type === 'tool-call');
    assert.deepEqual(calls.map(call => call.input.city), ['Paris', 'Rome']);
    assert.equal(await stream.text, 'Sunny in both.');
  },

  async function_call_of_a_reasoning_model() {
    const asked = { ...common, model: openai('gpt-5'), prompt: 'What is the weather?', stopWhen: stepCountIs(3) };
    for (const store of [true, false]) {
      const providerOptions = { openai: { store } };
      const made = await generateText({ ...asked, tools: { get_weather: weather }, providerOptions });
      assert.equal(made.text, 'It is sunny in Paris.');
      const stream = streamText({ ...asked, tools: { get_weather: weather }, providerOptions });
      await parts(stream);
      assert.equal(await stream.text, 'It is sunny in Paris.');
    }
  },

  async custom_tool() {
    const write_sql = openai.tools.customTool({
      name: 'write_sql', description: 'Runs SQL', execute: async said => `ran ${said}`,
    });
    const made = await generateText({
      ...common, prompt: 'Write SQL', tools: { write_sql }, stopWhen: stepCountIs(3),
    });
    assert.equal(made.steps[0].toolCalls[0].input, 'select 1');
    assert.equal(made.text, 'There are three.');
  },

  async structured() {
    const output = Output.object({ schema: z.object({ name: z.string(), price: z.number() }) });
    const asked = { ...common, output, prompt: 'The kettle as JSON' };
    assert.deepEqual((await generateText(asked)).output, { name: 'kettle', price: 30 });
    const stream = streamText(asked);
    await listed(stream.partialOutputStream);
    assert.deepEqual(await stream.output, { name: 'kettle', price: 30 });
  },

  async file_search() {
    const made = await generateText({
      ...common, ...with_results, prompt: 'How is the kettle cleaned?', tools: { file_search: search() },
    });
    assert.equal(made.text, 'Fill it with vinegar [1].');
    assert.deepEqual(made.sources.map(source => source.filename), ['manual.txt']);
    assert.equal(made.toolResults[0].output.results[0].filename, 'manual.txt');
    const plain = await generateText({
      ...common, prompt: 'How is the kettle cleaned?', tools: { file_search: search() },
    });
    assert.equal(plain.toolResults[0].output.results, null);
  },

  async file_search_streamed() {
    const asked = { ...common, ...with_results, tools: { file_search: search() } };
    const messages = [user('How is the kettle cleaned?')];
    const stream = streamText({ ...asked, messages });
    const all = await parts(stream);
    assert.equal(all.find(part => part.type === 'source').filename, 'manual.txt');
    assert.equal(all.find(part => part.type === 'tool-result').output.results.length, 1);
    const after = [...messages, ...(await stream.response).messages, user('Where is the kettle?')];
    const next = await generateText({ ...asked, messages: after });
    assert.equal(next.text, 'It is in the kitchen.');
  },

  async mixed_tools() {
    const made = await generateText({
      ...common, prompt: 'How is the kettle cleaned in Paris?', stopWhen: stepCountIs(3),
      tools: { file_search: search(), get_weather: weather },
    });
    assert.equal(made.text, 'With vinegar [1], in the sun.');
    assert.equal(made.sources.at(-1).filename, 'manual.txt');
  },

  async reasoning() {
    const asked = { ...common, model: openai('gpt-5') };
    const messages = [user('Think')];
    for (const store of [true, false]) {
      const providerOptions = { openai: { store, reasoningEffort: 'low' } };
      const made = await generateText({ ...asked, messages, providerOptions });
      assert.equal(made.text, 'Forty-two.');
      const stream = streamText({ ...asked, messages, providerOptions });
      await parts(stream);
      for (const said of [made.response.messages, (await stream.response).messages]) {
        const after = [...messages, ...said, user('Where is the kettle?')];
        assert.equal((await generateText({ ...asked, messages: after, providerOptions })).text, 'It is in the kitchen.');
      }
    }
  },

  async image() {
    const content = [
      { type: 'text', text: 'What is in the picture?' },
      { type: 'file', mediaType: 'image/png', data: Buffer.from(PIXEL, 'base64') },
    ];
    assert.equal((await generateText({ ...common, messages: [user(content)] })).text, 'A pixel.');
  },

  async refusal() {
    const made = await generateText({ ...common, prompt: 'Tell me a secret' });
    assert.ok(made);
    await parts(streamText({ ...common, prompt: 'Tell me a secret' }));
  },

  async incomplete() {
    const made = await generateText({ ...common, prompt: 'Go on and on', maxOutputTokens: 16 });
    assert.equal(made.finishReason, 'length');
    const stream = streamText({ ...common, prompt: 'Go on and on' });
    await parts(stream);
    assert.equal(await stream.finishReason, 'length');
  },

  async unknown_previous() {
    const providerOptions = { openai: { previousResponseId: 'resp_none' } };
    const error = await refused(generateText({ ...common, prompt: 'hello', providerOptions }));
    assert.ok(APICallError.isInstance(error));
    assert.equal(error.statusCode, 400);
    assert.equal(error.data.error.code, 'previous_response_not_found');
    const streamed = await refused(parts(streamText({ ...common, prompt: 'hello', providerOptions })));
    assert.equal(streamed.statusCode, 400);
  },

  async model_away() {
    const error = await refused(generateText({ ...common, prompt: 'Model away' }));
    assert.equal(error.statusCode, 503);
    assert.equal(error.isRetryable, true);
    assert.match(error.message, /loading/);
    const streamed = await refused(parts(streamText({ ...common, prompt: 'Model away' })));
    assert.match(JSON.stringify(streamed.data ?? streamed.message ?? streamed), /loading/);
  },

  async cut_off() {
    const error = await refused(generateText({ ...common, prompt: 'Break off' }));
    assert.match(error.message, /broke off|cut|ended|incomplete|closed/i);
    const streamed = streamText({ ...common, prompt: 'Break off' });
    const all = await listed(streamed.fullStream);
    assert.ok(all.some(part => part.type === 'text-delta'));
    assert.ok(all.some(part => part.type === 'error'));
  },

  async embedding() {
    const { embedding } = await embed({ model: openai.embedding('hash-64'), value: 'a kettle' });
    assert.equal(embedding.length, 64);
  },

  async left() {
    const stop = new AbortController();
    const stream = streamText({ ...common, prompt: 'Wait for ever', abortSignal: stop.signal });
    for await (const part of stream.fullStream) {
      if (part.type === 'text-delta') stop.abort();
    }
    assert.ok(stop.signal.aborted);
  },

  async mcp() {
    const tools = { mcp: openai.tools.mcp({ serverLabel: 'small', serverUrl: MCP, requireApproval: 'never' }) };
    const made = await generateText({ ...common, prompt: 'Please echo', tools });
    assert.equal(made.text, 'It said tiny.');
    const stream = streamText({ ...common, prompt: 'Please echo', tools });
    await parts(stream);
    assert.equal(await stream.text, 'It said tiny.');
  },

  async mcp_approval() {
    const tools = { mcp: openai.tools.mcp({ serverLabel: 'small', serverUrl: MCP, requireApproval: 'always' }) };
    const messages = [user('Please echo')];
    const first = await generateText({ ...common, messages, tools });
    const asking = first.content.find(part => part.type === 'tool-approval-request');
    const answer = { type: 'tool-approval-response', approvalId: asking.approvalId, approved: true, providerExecuted: true };
    const after = [...messages, ...first.response.messages, { role: 'tool', content: [answer] }];
    const second = await generateText({ ...common, messages: after, tools });
    assert.equal(second.text, 'It said tiny.');
  },
});
