// A vector store is asked with the AI SDK, streamed, with a tool that runs here.
//
//   npm install ai @ai-sdk/openai zod
//   node examples/vercel_ai.mjs STORE QUESTION
import { createOpenAI } from '@ai-sdk/openai';
import { stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const [store, question] = process.argv.slice(-2);
const url = process.env.MEMORANDA_URL ?? 'http://127.0.0.1:8377';
const memoranda = createOpenAI({ baseURL: `${url}/v1`, apiKey: 'none' });

const answer = streamText({
  model: memoranda(process.env.MEMORANDA_MODEL ?? 'extractive'),
  prompt: question,
  tools: {
    file_search: memoranda.tools.fileSearch({ vectorStoreIds: [store] }),
    get_weather: tool({
      description: 'The weather of a city',
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => `sunny in ${city}`,
    }),
  },
  stopWhen: stepCountIs(5),
});
for await (const text of answer.textStream) process.stdout.write(text);
console.log();
for (const source of await answer.sources) console.log(source.filename);
