// A program in strict TypeScript that uses the packed package. It is checked, not run.
import { generateText, wrapLanguageModel, type LanguageModel } from 'ai';
import { Memoranda, NotFound, type Memory, type SearchHit, type CallOptions } from 'memoranda';
import { memoryMiddleware, memoryTools, type MemoryOptions } from 'memoranda/ai';
import { embeddingModel, MemorandaMemoryStorage, MemorandaStorage, MemorandaVector } from 'memoranda/mastra';
import { Mastra } from '@mastra/core/mastra';
import { InMemoryStore, MastraCompositeStore } from '@mastra/core/storage';
import { Memory as MastraMemory } from '@mastra/memory';

const memoranda = new Memoranda({ baseURL: 'http://127.0.0.1:8377', apiKey: 'k', timeout: 1 });
const options: CallOptions = { signal: new AbortController().signal };
const hits: SearchHit[] = (await memoranda.memories.search({ query: 'x', limit: 1, filters: { a: 1 } }, options)).results;
const memory: Memory | undefined = hits[0]?.memory;
const tags: string[] = memory?.tags ?? [];
const raw = await memoranda.http.GET('/v1/models');
const id: string | undefined = raw.data?.data[0]?.id;
// @ts-expect-error a field that is no field
await memoranda.memories.add({ content: 'x', contents: 'y' });
// @ts-expect-error a kind that is none
await memoranda.memories.add({ content: 'x', kind: 'nothing' });
for await (const event of memoranda.responses.stream('x')) console.log(event.type, tags, id);
try { await memoranda.memories.get('x'); } catch (error) { if (error instanceof NotFound) console.log(error.status, error.param); }
declare const base: Exclude<LanguageModel, string>;
const settings: MemoryOptions = { sessionId: 's', context: { budget: 100 }, onError: (error, during) => console.log(error, during) };
const model = wrapLanguageModel({ model: base, middleware: memoryMiddleware(memoranda, settings) });
const { recall, remember } = memoryTools(memoranda, { userId: 'u' });
const result = await generateText({ model, prompt: 'x', tools: { recall, remember } });
console.log(result.text);
const vectors = new MemorandaVector({ memoranda });
await vectors.createIndex({ indexName: 'x', dimension: 3 });
const found = await vectors.query({ indexName: 'x', queryVector: [1], filter: { a: { $gt: 1 } } });
console.log(found[0]?.score.toFixed(), new Mastra({ vectors: { vectors } }));
const storage = new MemorandaStorage({ memoranda, name: 'x', observe: false });
const mastraMemory = new MastraMemory({ storage, vector: vectors, embedder: embeddingModel(memoranda) });
const memoryStorage = new MemorandaMemoryStorage({ memoranda });
const composed = new MastraCompositeStore({ id: 'app', default: new InMemoryStore(), domains: { memory: memoryStorage } });
const { threads } = await memoryStorage.listThreads({ filter: { resourceId: 'u' }, perPage: 1 });
console.log(threads[0]?.title, await mastraMemory.getWorkingMemory({ threadId: 't' }), new Mastra({ storage: composed }));
