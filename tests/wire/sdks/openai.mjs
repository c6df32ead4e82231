// The cases of the `openai` package. PACKAGE names the version to load.
import assert from 'node:assert/strict';
import { z } from 'zod';
import { MCP, PIXEL, STORE, URL, listed, play, refused, until } from './cases.mjs';

const PACKAGE = process.env.PACKAGE ?? 'openai';
const { default: OpenAI, toFile } = await import(PACKAGE);
const { zodTextFormat, zodResponsesFunction } = await import(`${PACKAGE}/helpers/zod`);
const { ResponsesWS } = await import(`${PACKAGE}/resources/responses/ws`);

const client = new OpenAI({ baseURL: `${URL}/v1`, apiKey: 'none', maxRetries: 0 });
const model = 'scripted';
const weather = {
  type: 'function',
  name: 'get_weather',
  description: 'The weather of a city',
  strict: true,
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
};
const answered = calls =>
  calls
    .filter(item => item.type === 'function_call')
    .map(({ call_id, arguments: said }) => ({
      type: 'function_call_output',
      call_id,
      output: `sunny in ${JSON.parse(said).city}`,
    }));
const search = { type: 'file_search', vector_store_ids: [STORE] };

await play({
  async plain() {
    const made = await client.responses.create({ model, input: 'Where is the kettle?', metadata: { a: 'b' } });
    assert.equal(made.output_text, 'It is in the kitchen.');
    assert.equal(made.status, 'completed');
    assert.deepEqual(made.metadata, { a: 'b' });
    assert.ok(made.usage.total_tokens > 0);
    const kept = await client.responses.retrieve(made.id);
    assert.equal(kept.output_text, made.output_text);
    const items = await listed(client.responses.inputItems.list(made.id));
    assert.equal(items[0].content[0].text, 'Where is the kettle?');
    await client.responses.delete(made.id);
    assert.equal((await refused(client.responses.retrieve(made.id))).status, 404);
  },

  async stream() {
    const stream = await client.responses.create({ model, input: 'Where is the kettle?', stream: true });
    const events = await listed(stream);
    assert.deepEqual(events.map(event => event.sequence_number), events.map((_, i) => i));
    const deltas = events.filter(event => event.type === 'response.output_text.delta').map(event => event.delta);
    assert.equal(deltas.join(''), 'It is in the kitchen.');
    assert.ok(deltas.length > 1);
    assert.equal(events.at(-1).type, 'response.completed');
  },

  async stream_helper() {
    const stream = client.responses.stream({ model, input: 'Where is the kettle?' });
    let text = '';
    stream.on('response.output_text.delta', event => { text += event.delta; });
    const made = await stream.finalResponse();
    assert.equal(text, made.output_text);
    assert.equal(made.output_text, 'It is in the kitchen.');
  },

  async chain() {
    const first = await client.responses.create({ model, input: 'My name is Ada, chain.' });
    const second = await client.responses.create({
      model, input: 'What is my name, chain?', previous_response_id: first.id,
    });
    assert.equal(second.output_text, 'You are Ada.');
    assert.equal(second.previous_response_id, first.id);
  },

  async conversation() {
    const held = await client.conversations.create({ metadata: { topic: 'names' } });
    await client.responses.create({ model, input: 'My name is Ada, conversation.', conversation: held.id });
    const stream = client.responses.stream({
      model, input: 'What is my name, conversation?', conversation: { id: held.id },
    });
    const made = await stream.finalResponse();
    assert.equal(made.output_text, 'You are Ada.');
    assert.equal(made.conversation.id, held.id);
    const items = await listed(client.conversations.items.list(held.id, { order: 'asc' }));
    assert.deepEqual(items.map(item => item.role), ['user', 'assistant', 'user', 'assistant']);
    await client.conversations.delete(held.id);
  },

  async replayed() {
    const input = [{ role: 'user', content: 'My name is Ada, replayed.' }];
    const first = await client.responses.create({ model, input, store: false });
    input.push(...first.output, { role: 'user', content: 'What is my name, replayed?' });
    const second = await client.responses.create({ model, input, store: false });
    assert.equal(second.output_text, 'You are Ada.');
    assert.equal((await refused(client.responses.retrieve(second.id))).status, 404);
  },

  async function_call() {
    const tools = [weather];
    const input = [{ role: 'user', content: 'What is the weather?' }];
    const first = await client.responses.create({ model, input, tools });
    const again = [...input, ...first.output, ...answered(first.output)];
    const second = await client.responses.create({ model, input: again, tools });
    assert.equal(second.output_text, 'It is sunny in Paris.');
    const chained = await client.responses.create({
      model, tools, input: answered(first.output), previous_response_id: first.id,
    });
    assert.equal(chained.output_text, 'It is sunny in Paris.');
  },

  async function_call_streamed() {
    const tools = [zodResponsesFunction({ name: 'get_weather', parameters: z.object({ city: z.string() }) })];
    const stream = client.responses.stream({ model, input: 'The weather in two cities?', tools });
    const deltas = {};
    stream.on('response.function_call_arguments.delta', event => {
      deltas[event.item_id] = (deltas[event.item_id] ?? '') + event.delta;
    });
    const first = await stream.finalResponse();
    const calls = first.output.filter(item => item.type === 'function_call');
    assert.deepEqual(calls.map(call => call.parsed_arguments.city), ['Paris', 'Rome']);
    assert.deepEqual(calls.map(call => deltas[call.id]), calls.map(call => call.arguments));
    const second = await client.responses.create({
      model, tools: [weather], input: answered(calls), previous_response_id: first.id,
    });
    assert.equal(second.output_text, 'Sunny in both.');
  },

  async chat_completions() {
    const messages = [
      { role: 'user', content: 'My name is Ada, chatting.' },
      { role: 'assistant', content: 'Hello Ada.' },
      { role: 'user', content: 'What is my name, chatting?' },
    ];
    const made = await client.chat.completions.create({ model, messages });
    assert.equal(made.choices[0].message.content, 'You are Ada.');
    const asked = { model, messages, stream_options: { include_usage: true } };
    const ended = await client.chat.completions.stream(asked).finalChatCompletion();
    assert.equal(ended.choices[0].message.content, 'You are Ada.');
    assert.ok(ended.usage.total_tokens > 0);
  },

  async custom_tool() {
    const tools = [{ type: 'custom', name: 'write_sql', description: 'Runs SQL' }];
    const stream = client.responses.stream({ model, input: 'Write SQL', tools });
    const first = await stream.finalResponse();
    const call = first.output.at(-1);
    assert.equal(call.type, 'custom_tool_call');
    assert.equal(call.input, 'select 1');
    const output = { type: 'custom_tool_call_output', call_id: call.call_id, output: '3' };
    const second = await client.responses.create({ model, tools, input: [output], previous_response_id: first.id });
    assert.equal(second.output_text, 'There are three.');
  },

  async structured() {
    const format = zodTextFormat(z.object({ name: z.string(), price: z.number() }), 'thing');
    const asked = { model, input: 'The kettle as JSON', text: { format } };
    const made = await client.responses.parse(asked);
    assert.deepEqual(made.output_parsed, { name: 'kettle', price: 30 });
    const streamed = await client.responses.stream(asked).finalResponse();
    assert.deepEqual(streamed.output_parsed, { name: 'kettle', price: 30 });
  },

  async file_search() {
    const file = await toFile(Buffer.from('Fill the kettle with vinegar to clean it.'), 'manual.txt');
    const store = await client.vectorStores.create({ name: 'manuals' });
    await client.vectorStores.files.uploadAndPoll(store.id, file, { pollIntervalMs: 50 });
    const tools = [{ type: 'file_search', vector_store_ids: [store.id], max_num_results: 3 }];
    const asked = { model, input: 'How is the kettle cleaned?', tools };
    const made = await client.responses.create({ ...asked, include: ['file_search_call.results'] });
    const call = made.output.find(item => item.type === 'file_search_call');
    assert.deepEqual(call.queries, ['cleaning the kettle']);
    assert.equal(call.results[0].filename, 'manual.txt');
    const [cited] = made.output.at(-1).content[0].annotations;
    assert.equal(cited.type, 'file_citation');
    assert.equal(cited.file_id, call.results[0].file_id);
    const plain = await client.responses.create(asked);
    assert.equal(plain.output[0].results, null);
  },

  async file_search_streamed() {
    const stream = client.responses.stream({
      model, input: 'How is the kettle cleaned?', tools: [search], include: ['file_search_call.results'],
    });
    const seen = [];
    stream.on('event', event => seen.push(event.type));
    const made = await stream.finalResponse();
    for (const stage of ['in_progress', 'searching', 'completed']) {
      assert.ok(seen.includes(`response.file_search_call.${stage}`), stage);
    }
    assert.ok(seen.includes('response.output_text.annotation.added'));
    assert.equal(made.output[0].results.length, 1);
    assert.equal(made.output.at(-1).content[0].annotations[0].filename, 'manual.txt');
  },

  async mixed_tools() {
    const tools = [search, weather];
    const first = await client.responses.create({ model, input: 'How is the kettle cleaned in Paris?', tools });
    assert.deepEqual(first.output.map(item => item.type).sort(), ['file_search_call', 'function_call']);
    const second = await client.responses.create({
      model, tools, input: answered(first.output), previous_response_id: first.id,
    });
    assert.equal(second.output_text, 'With vinegar [1], in the sun.');
    assert.equal(second.output.at(-1).content[0].annotations.length, 1);
  },

  async reasoning() {
    const stream = client.responses.stream({ model, input: 'Think', reasoning: { effort: 'low' } });
    const seen = [];
    stream.on('event', event => seen.push(event.type));
    const first = await stream.finalResponse();
    assert.ok(seen.includes('response.reasoning_text.delta'));
    assert.equal(first.output[0].type, 'reasoning');
    assert.equal(first.output[0].content[0].text, 'Let me see.');
    assert.equal(first.output_text, 'Forty-two.');
    const input = [...first.output, { role: 'user', content: 'Where is the kettle?' }];
    const second = await client.responses.create({ model, input });
    assert.equal(second.output_text, 'It is in the kitchen.');
  },

  async item_reference() {
    const first = await client.responses.create({ model, input: 'My name is Ada, reference.' });
    const input = [
      { type: 'item_reference', id: first.output[0].id },
      { role: 'user', content: 'What is my name, reference?' },
    ];
    const second = await client.responses.create({ model, input });
    assert.equal(second.output_text, 'You are Ada.');
    const thought = await client.responses.create({ model, input: 'Think' });
    const both = thought.output.map(({ id }) => ({ type: 'item_reference', id }));
    await client.responses.create({
      model, input: [...both, { role: 'user', content: 'Where is the kettle, after thinking?' }],
    });
    const unknown = [{ type: 'item_reference', id: 'msg_none' }];
    assert.equal((await refused(client.responses.create({ model, input: unknown }))).status, 400);
  },

  async image() {
    const content = [
      { type: 'input_text', text: 'What is in the picture?' },
      { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}`, detail: 'auto' },
    ];
    const made = await client.responses.create({ model, input: [{ role: 'user', content }] });
    assert.equal(made.output_text, 'A pixel.');
  },

  async refusal() {
    const made = await client.responses.stream({ model, input: 'Tell me a secret' }).finalResponse();
    assert.equal(made.output[0].content[0].refusal, 'I cannot tell.');
  },

  async incomplete() {
    const made = await client.responses.create({ model, input: 'Go on and on', max_output_tokens: 16 });
    assert.equal(made.status, 'incomplete');
    assert.equal(made.incomplete_details.reason, 'max_output_tokens');
    const events = await listed(await client.responses.create({ model, input: 'Go on and on', stream: true }));
    assert.equal(events.at(-1).type, 'response.incomplete');
  },

  async unknown_previous() {
    const error = await refused(
      client.responses.create({ model, input: 'hello', previous_response_id: 'resp_none' }),
    );
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.code, 'previous_response_not_found');
    assert.equal(error.param, 'previous_response_id');
    const streamed = { model, input: 'hello', previous_response_id: 'resp_none', stream: true };
    assert.equal((await refused(client.responses.create(streamed))).status, 400);
  },

  async model_away() {
    const error = await refused(client.responses.create({ model, input: 'Model away' }));
    assert.equal(error.status, 503);
    assert.equal(error.code, 'model_unavailable');
    const events = await listed(await client.responses.create({ model, input: 'Model away', stream: true }));
    assert.equal(events.at(-1).type, 'response.failed');
    assert.equal(events.at(-1).response.error.code, 'server_error');
  },

  async cut_off() {
    const made = await client.responses.create({ model, input: 'Break off' });
    assert.equal(made.status, 'failed');
    assert.equal(made.output_text, 'half of');
    const events = await listed(await client.responses.create({ model, input: 'Break off', stream: true }));
    assert.equal(events.at(-1).type, 'response.failed');
  },

  async background() {
    const made = await client.responses.create({ model, input: 'Count slowly', background: true });
    const ended = await until(async () => {
      const seen = await client.responses.retrieve(made.id);
      return seen.status === 'completed' && seen;
    });
    assert.equal(ended.output_text, 'one two three four');
    const all = await listed(await client.responses.retrieve(made.id, { stream: true }));
    const rest = await listed(await client.responses.retrieve(made.id, { stream: true, starting_after: 4 }));
    assert.deepEqual(rest, all.slice(5));
    const helped = await client.responses.stream({ response_id: made.id }).finalResponse();
    assert.equal(helped.output_text, 'one two three four');
  },

  async cancelled() {
    const made = await client.responses.create({ model, input: 'Wait for ever', background: true });
    assert.equal((await client.responses.cancel(made.id)).status, 'cancelled');
  },

  async left() {
    const stream = await client.responses.create({ model, input: 'Wait for ever', stream: true });
    let id;
    for await (const event of stream) {
      id ??= event.response.id;
      if (event.type === 'response.output_text.delta') break;
    }
    const kept = await until(() => client.responses.retrieve(id).catch(() => false));
    assert.equal(kept.status, 'cancelled');
    assert.ok(kept.output_text.startsWith('this'));
  },

  async counted() {
    const { input_tokens } = await client.responses.inputTokens.count({ model, input: 'a b c' });
    assert.ok(input_tokens >= 3);
  },

  async websocket() {
    const socket = new ResponsesWS(client);
    const events = [];
    const ended = new Promise((done, failed) => {
      socket.on('error', failed);
      socket.on('event', event => {
        events.push(event);
        if (event.type === 'response.completed') done(event.response);
      });
    });
    socket.send({ type: 'response.create', model, input: 'Where is the kettle?' });
    const made = await ended;
    socket.close();
    assert.equal(made.output[0].content[0].text, 'It is in the kitchen.');
    assert.deepEqual(events.map(event => event.sequence_number), events.map((_, i) => i));
  },

  async mcp() {
    const tools = [{ type: 'mcp', server_label: 'small', server_url: MCP, require_approval: 'never' }];
    const made = await client.responses.stream({ model, input: 'Please echo', tools }).finalResponse();
    const kinds = made.output.map(item => item.type);
    assert.deepEqual(kinds, ['mcp_list_tools', 'mcp_call', 'message']);
    assert.equal(made.output_text, 'It said tiny.');
  },

  async mcp_approval() {
    const tools = [{ type: 'mcp', server_label: 'small', server_url: MCP, require_approval: 'always' }];
    const first = await client.responses.create({ model, input: 'Please echo', tools });
    const asking = first.output.at(-1);
    assert.equal(asking.type, 'mcp_approval_request');
    const answer = { type: 'mcp_approval_response', approval_request_id: asking.id, approve: true };
    const second = await client.responses.create({
      model, tools, input: [answer], previous_response_id: first.id,
    });
    assert.equal(second.output_text, 'It said tiny.');
  },
});
