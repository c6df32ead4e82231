// A file is uploaded and asked about with the `openai` package, streamed, and the conversation goes on.
//
//   npm install openai
//   node examples/openai_client.mjs FILE QUESTION
import { createReadStream } from 'node:fs';
import OpenAI from 'openai';

const [path, question] = process.argv.slice(-2);
const url = process.env.MEMORANDA_URL ?? 'http://127.0.0.1:8377';
const model = process.env.MEMORANDA_MODEL ?? 'extractive';
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none' });

const store = await client.vectorStores.create({ name: 'manuals' });
await client.vectorStores.files.uploadAndPoll(store.id, createReadStream(path));
console.log('store:', store.id);

const tools = [{ type: 'file_search', vector_store_ids: [store.id] }];
const stream = client.responses.stream({ model, input: question, tools });
stream.on('response.output_text.delta', event => process.stdout.write(event.delta));
const answer = await stream.finalResponse();
console.log();
for (const note of answer.output.at(-1).content[0].annotations) console.log(note.text, note.filename);

const again = await client.responses.create({
  model, input: 'And in one sentence?', previous_response_id: answer.id, tools,
});
console.log(again.output_text);
