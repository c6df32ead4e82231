// The cases of the AI SDK's provider for servers that speak Open Responses.
import assert from 'node:assert/strict';
import { generateText, stepCountIs, streamText, tool, Output } from 'ai';
import { createOpenResponses } from '@ai-sdk/open-responses';
import { z } from 'zod';
import { PIXEL, URL, listed, play, refused } from './cases.mjs';

const provider = createOpenResponses({ name: 'memoranda', url: `${URL}/v1/responses` });
const common = { model: provider('scripted'), maxRetries: 0, onError() {} };
const get_weather = tool({
  description: 'The weather of a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `sunny in ${city}`,
});
const user = content => ({ role: 'user', content });

await play({
  async plain() {
    const made = await generateText({ ...common, system: 'Be kind.', prompt: 'Where is the kettle?' });
    assert.equal(made.text, 'It is in the kitchen.');
    assert.ok(made.usage.outputTokens > 0);
  },

  async stream() {
    const deltas = await listed(streamText({ ...common, prompt: 'Where is the kettle?' }).textStream);
    assert.ok(deltas.length > 1);
    assert.equal(deltas.join(''), 'It is in the kitchen.');
  },

  async messages() {
    const first = [user('My name is Ada, open.')];
    const { response } = await generateText({ ...common, messages: first });
    const messages = [...first, ...response.messages, user('What is my name, open?')];
    assert.equal((await generateText({ ...common, messages })).text, 'You are Ada.');
  },

  async function_call() {
    const asked = { ...common, prompt: 'What is the weather?', tools: { get_weather }, stopWhen: stepCountIs(3) };
    assert.equal((await generateText(asked)).text, 'It is sunny in Paris.');
    const stream = streamText(asked);
    await listed(stream.fullStream);
    assert.equal(await stream.text, 'It is sunny in Paris.');
  },

  async structured() {
    const output = Output.object({ schema: z.object({ name: z.string(), price: z.number() }) });
    const made = await generateText({ ...common, output, prompt: 'The kettle as JSON' });
    assert.deepEqual(made.output, { name: 'kettle', price: 30 });
  },

  async reasoning() {
    const messages = [user('Think')];
    const made = await generateText({ ...common, messages });
    assert.equal(made.reasoningText, 'Let me see.');
    const stream = streamText({ ...common, messages });
    const all = await listed(stream.fullStream);
    const thought = all.filter(part => part.type === 'reasoning-delta').map(part => part.text);
    assert.equal(thought.join(''), 'Let me see.');
    const after = [...messages, ...made.response.messages, user('Where is the kettle?')];
    assert.equal((await generateText({ ...common, messages: after })).text, 'It is in the kitchen.');
  },

  async image() {
    const content = [
      { type: 'text', text: 'What is in the picture?' },
      { type: 'file', mediaType: 'image/png', data: Buffer.from(PIXEL, 'base64') },
    ];
    assert.equal((await generateText({ ...common, messages: [user(content)] })).text, 'A pixel.');
  },

  async model_away() {
    const error = await refused(generateText({ ...common, prompt: 'Model away' }));
    assert.equal(error.statusCode, 503);
    const all = await listed(streamText({ ...common, prompt: 'Model away' }).fullStream);
    assert.match(String(all.find(part => part.type === 'error').error), /loading/);
  },
});
