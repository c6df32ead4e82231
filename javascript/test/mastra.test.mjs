// Mastra's vector store on a server at MEMORANDA_URL, whose embedding model is hash:64.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Mastra } from '@mastra/core/mastra';
import { MastraVector } from '@mastra/core/vector';
import { DimensionMismatch, InvalidInput, Memoranda, NotFound } from 'memoranda';
import { MemorandaVector } from 'memoranda/mastra';

const memoranda = new Memoranda({ baseURL: process.env.MEMORANDA_URL });
const store = new MemorandaVector({ memoranda, name: 'test' });
const dimension = 64;

/** The unit vector of an axis, with a part of the next one. */
function axis(at, beside = 0) {
  return Array.from({ length: dimension }, (_, i) => (i === at ? Math.sqrt(1 - beside ** 2) : i === at + 1 ? beside : 0));
}

const ids = (found) => found.map((one) => one.id).sort();

test('an index from its first day to its last', async () => {
  await store.createIndex({ indexName: 'life', dimension });
  await store.createIndex({ indexName: 'life', dimension });
  assert.deepEqual(await store.listIndexes(), ['life']);
  assert.deepEqual(await new MemorandaVector({ memoranda, name: 'other' }).listIndexes(), []);
  assert.deepEqual(await store.describeIndex({ indexName: 'life' }), { dimension, count: 0, metric: 'cosine' });
  await store.upsert({ indexName: 'life', vectors: [axis(0), axis(1)] });
  assert.equal((await store.describeIndex({ indexName: 'life' })).count, 2);
  await store.deleteIndex({ indexName: 'life' });
  assert.deepEqual(await store.listIndexes(), []);
  await assert.rejects(store.describeIndex({ indexName: 'life' }), NotFound);
  await store.createIndex({ indexName: 'life', dimension });
  assert.equal((await store.describeIndex({ indexName: 'life' })).count, 0);
});

test('vectors are found by their cosine, with metadata and vector', async () => {
  await store.createIndex({ indexName: 'near', dimension });
  const metadata = [{ text: 'red', n: 1 }, { text: 'red', n: 2 }, { $odd: true, 'mastra.x': 1, n: 3 }];
  await store.upsert({ indexName: 'near', vectors: [axis(0), axis(0, 0.6), axis(9)], ids: ['a', 'b', 'c'], metadata });
  const found = await store.query({ indexName: 'near', queryVector: axis(0), topK: 2, includeVector: true });
  assert.deepEqual(found.map((one) => one.id), ['a', 'b']);
  assert.ok(Math.abs(found[0].score - 1) < 1e-3 && Math.abs(found[1].score - 0.8) < 1e-3, String(found.map((one) => one.score)));
  assert.deepEqual(found.map((one) => one.metadata), metadata.slice(0, 2));
  assert.ok(found[1].vector.every((number, i) => Math.abs(number - axis(0, 0.6)[i]) < 1e-3));
  const [last] = await store.query({ indexName: 'near', queryVector: axis(9), topK: 1 });
  assert.deepEqual(last.metadata, metadata[2]);
  assert.equal(last.vector, undefined);
});

test('a vector of an id that is there replaces it', async () => {
  await store.createIndex({ indexName: 'again', dimension });
  await store.upsert({ indexName: 'again', vectors: [axis(0)], ids: ['x'], metadata: [{ text: 'old' }] });
  await store.upsert({ indexName: 'again', vectors: [axis(0), axis(5)], ids: ['x', 'x'], metadata: [{}, { text: 'new' }] });
  const found = await store.query({ indexName: 'again', queryVector: axis(5) });
  assert.deepEqual(found.map((one) => [one.id, one.metadata]), [['x', { text: 'new' }]]);
  assert.ok(found[0].score > 0.99);
});

test('a refused write leaves what was there, and names the field of the caller', async () => {
  const indexName = 'refused';
  await store.createIndex({ indexName, dimension });
  const names = ['a', 'b', 'c'];
  const good = { indexName, ids: names, vectors: names.map((_, i) => axis(i)), metadata: names.map((name) => ({ text: name, of: 'x' })) };
  await store.upsert(good);
  const before = await store.query({ indexName, filter: { of: 'x' }, includeVector: true });
  const cases = [
    [axis(0), { text: 'cut \ud83d' }, 'metadata[2].text', 'update.metadata.text'],
    [axis(0), { text: 'x', 'mastra.y': '\0' }, 'metadata[2]', 'update.metadata'],
    [axis(0), { long: 'x'.repeat(70_000) }, 'metadata[2]', 'update.metadata'],
    [axis(0).fill(NaN), {}, 'vectors[2]', 'update.vector'],
  ];
  const more = Array.from({ length: 500 }, (_, i) => `more-${i}`); // a request of its own, which is accepted
  for (const [vector, metadata, param, updated] of cases) {
    const name = (found) => (error) => error instanceof InvalidInput && error.param.startsWith(found) && error.message.startsWith(found);
    const wrong = { ...good, vectors: [axis(4), axis(5), vector], metadata: [{}, {}, metadata] };
    await assert.rejects(store.upsert(wrong), name(param));
    await assert.rejects(store.updateVector({ indexName, id: 'a', update: { vector, metadata } }), name(updated));
    await assert.rejects(store.updateVector({ indexName, filter: { of: 'x' }, update: { vector, metadata } }), name(updated));
    const long = { indexName, ids: [...more, 'a'], vectors: [...more.map(() => axis(4)), vector], metadata: [...more.map(() => ({})), metadata] };
    await assert.rejects(store.upsert(long), name(param.replace('[2]', '[500]')));
    assert.equal((await store.describeIndex({ indexName })).count, 3);
  }
  assert.deepEqual(await store.query({ indexName, filter: { of: 'x' }, includeVector: true }), before);
  const id = { indexName, ids: ['\ud800'], vectors: [axis(0)] };
  await assert.rejects(store.upsert(id), (error) => error.param === 'ids[0]');
});

test('of writes at the same time the last one stays', async () => {
  const indexName = 'same-time';
  await store.createIndex({ indexName, dimension });
  for (let round = 0; round < 2; round++) {
    const numbers = Array.from({ length: 6 }, (_, n) => n);
    await Promise.all(numbers.map((n) => store.upsert({ indexName, vectors: [axis(n)], ids: ['x'], metadata: [{ n }] })));
    assert.equal((await store.describeIndex({ indexName })).count, 1);
  }
  await store.upsert({ indexName, vectors: [axis(9)], ids: ['x'], metadata: [{ n: 9 }] });
  assert.deepEqual((await store.query({ indexName, queryVector: axis(9) })).map(({ metadata }) => metadata), [{ n: 9 }]);
});

test('filters', async () => {
  const indexName = 'filters';
  await store.createIndex({ indexName, dimension });
  const metadata = [{ lang: 'en', year: 2020, tags: ['a', 'b'] }, { lang: 'de', year: 2021 }, { lang: 'de', year: 2022, draft: true }];
  await store.upsert({ indexName, vectors: [axis(0), axis(1), axis(2)], ids: ['1', '2', '3'], metadata });
  const cases = [
    [{ lang: 'de' }, ['2', '3']],
    [{ lang: ['en', 'fr'] }, ['1']],
    [{ year: { $gt: 2020, $lte: 2021 } }, ['2']],
    [{ year: { $nin: [2020] }, lang: { $ne: 'en' } }, ['2', '3']],
    [{ $or: [{ lang: 'en' }, { draft: true }] }, ['1', '3']],
    [{ $and: [{ lang: 'de' }, { draft: { $exists: false } }] }, ['2']],
    [{ $not: { $or: [{ lang: 'en' }, { draft: { $eq: true } }] } }, ['2']],
    [{ $nor: [{ lang: 'en' }, { year: 2022 }] }, ['2']],
    [{ tags: { $all: ['a', 'b'] } }, ['1']],
    [{ lang: { $not: { $in: ['de'] } } }, ['1']],
    [{ tags: { $all: [] } }, []],
  ];
  for (const [filter, expected] of cases) {
    assert.deepEqual(ids(await store.query({ indexName, queryVector: axis(0), filter })), expected, JSON.stringify(filter));
    assert.deepEqual(ids(await store.query({ indexName, filter })), expected, JSON.stringify(filter));
  }
  assert.equal((await store.query({ indexName, filter: { lang: 'de' }, topK: 1 })).length, 1);
  for (const filter of [{ lang: { $regex: 'e' } }, { $not: { year: { $gt: 1 } } }, { 'a.b': 1 }, { $x: 1 }, { lang: { a: 1 } }, { $or: {} }]) {
    await assert.rejects(store.query({ indexName, filter }), InvalidInput, JSON.stringify(filter));
  }
});

test('a condition that is none is refused, never left out', async () => {
  const indexName = 'conditions';
  await store.createIndex({ indexName, dimension });
  await store.upsert({ indexName, vectors: [axis(0)], metadata: [{ team: 'a', name: 'n' }] });
  for (const value of [/^n$/, {}, new Map([['$eq', 'n']]), new Set(['n']), { $not: /n/ }, { $lt: Infinity }, NaN, new Date(NaN)]) {
    for (const filter of [{ team: 'a', name: value }, { $or: [{ name: value }] }]) {
      await assert.rejects(store.deleteVectors({ indexName, filter }), (error) => error instanceof InvalidInput && /^filter\..*name/.test(error.param));
      await assert.rejects(store.query({ indexName, queryVector: axis(0), filter }), InvalidInput);
    }
  }
  for (const filter of [new Map([['team', 'b']]), /a/, { $or: [new Map()] }, { extracted_by: 'x' }]) {
    await assert.rejects(store.query({ indexName, queryVector: axis(0), filter }), InvalidInput);
  }
  await assert.rejects(store.upsert({ indexName, vectors: [axis(1)], deleteFilter: { name: /n/ } }), { param: 'deleteFilter.name' });
  assert.equal((await store.describeIndex({ indexName })).count, 1);
});

test('updates, one and by filter', async () => {
  const indexName = 'updates';
  await store.createIndex({ indexName, dimension });
  await store.upsert({ indexName, vectors: [axis(0), axis(1)], ids: ['1', '2'], metadata: [{ text: 'one', user: 'u' }, { text: 'two', user: 'u' }] });
  await store.updateVector({ indexName, id: '1', update: { vector: axis(7) } });
  const [moved] = await store.query({ indexName, queryVector: axis(7), topK: 1 });
  assert.deepEqual([moved.id, moved.metadata], ['1', { text: 'one', user: 'u' }]);
  await store.updateVector({ indexName, filter: { user: 'u' }, update: { metadata: { text: 'three' } } });
  const [same] = await store.query({ indexName, queryVector: axis(7), topK: 1 });
  assert.deepEqual([same.id, same.metadata], ['1', { text: 'three' }]);
  assert.ok(same.score > 0.99);
  await assert.rejects(store.updateVector({ indexName, id: 'none', update: { metadata: {} } }), NotFound);
  await assert.rejects(store.updateVector({ indexName, id: '1', update: {} }), InvalidInput);
});

test('deletions by id, by filter and before an upsert', async () => {
  const indexName = 'deletions';
  await store.createIndex({ indexName, dimension });
  const metadata = ['a.pdf', 'a.pdf', 'b.pdf', 'b.pdf'].map((source) => ({ source }));
  await store.upsert({ indexName, vectors: [0, 1, 2, 3].map((at) => axis(at)), ids: ['1', '2', '3', '4'], metadata });
  await store.deleteVector({ indexName, id: '4' });
  await store.upsert({ indexName, vectors: [axis(8)], ids: ['2'], metadata: [{ source: 'a.pdf' }], deleteFilter: { source: 'a.pdf' } });
  assert.deepEqual(ids(await store.query({ indexName, queryVector: axis(8) })), ['2', '3']);
  await store.deleteVectors({ indexName, filter: { source: 'b.pdf' } });
  assert.deepEqual(ids(await store.query({ indexName, queryVector: axis(8) })), ['2']);
  await store.deleteVectors({ indexName, ids: ['2', 'none'] });
  assert.deepEqual(await store.query({ indexName, queryVector: axis(8) }), []);
  await store.upsert({ indexName, vectors: [axis(3)], ids: ['4'], metadata: [{ source: 'b.pdf' }] });
  assert.deepEqual(ids(await store.query({ indexName, queryVector: axis(3) })), ['4']);
  await assert.rejects(store.deleteVectors({ indexName }), InvalidInput);
  await assert.rejects(store.deleteVectors({ indexName, filter: {} }), InvalidInput);
});

test('many ids, and long ones', async () => {
  const indexName = 'many';
  await store.createIndex({ indexName, dimension });
  const names = Array.from({ length: 1500 }, (_, i) => `${'\u00e9'.repeat(120)}${i}`);
  const rows = { ids: names, vectors: names.map(() => axis(0)), metadata: names.map((name) => ({ name })) };
  await store.upsert({ indexName, ...rows });
  await store.upsert({ indexName, ...rows });
  assert.equal((await store.describeIndex({ indexName })).count, 1500);
  assert.equal((await store.query({ indexName, filter: { name: { $in: names } }, topK: 1400 })).length, 1400);
  await store.deleteVectors({ indexName, ids: names.slice(1) });
  assert.deepEqual(ids(await store.query({ indexName, filter: { name: { $exists: true } } })), [names[0]]);
});

test('names may have slashes', async () => {
  const above = new MemorandaVector({ memoranda, name: 'x' });
  const below = new MemorandaVector({ memoranda, name: 'x/y' });
  for (const [vectors, indexName] of [[above, 'y/z'], [above, 'y'], [below, 'z']]) await vectors.createIndex({ indexName, dimension });
  await above.upsert({ indexName: 'y/z', vectors: [axis(0)], ids: ['1'] });
  await above.upsert({ indexName: 'y', vectors: [axis(0)], ids: ['2'] });
  assert.deepEqual(await below.query({ indexName: 'z', queryVector: axis(0) }), []);
  assert.deepEqual(await below.listIndexes(), ['z']);
  await below.deleteIndex({ indexName: 'z' });
  assert.deepEqual(ids(await above.query({ indexName: 'y/z', queryVector: axis(0) })), ['1']);
});

test('what cannot be is refused', async () => {
  await assert.rejects(store.createIndex({ indexName: 'wrong', dimension: 3 }), DimensionMismatch);
  await assert.rejects(store.createIndex({ indexName: 'wrong', dimension, metric: 'euclidean' }), InvalidInput);
  await assert.rejects(store.upsert({ indexName: 'none', vectors: [axis(0)] }), NotFound);
  await store.createIndex({ indexName: 'refusals', dimension });
  await assert.rejects(store.upsert({ indexName: 'refusals', vectors: [[1, 2]] }), DimensionMismatch);
  await assert.rejects(store.upsert({ indexName: 'refusals', vectors: [axis(0)], ids: ['a', 'b'] }), InvalidInput);
  await assert.rejects(store.query({ indexName: 'refusals' }), InvalidInput);
  await assert.rejects(store.describeIndex({ indexName: 'absent' }), /no index absent/);
  for (const topK of [0, 2000]) {
    await assert.rejects(store.query({ indexName: 'refusals', queryVector: axis(0), topK }), (error) => error.param === 'topK' && /^topK/.test(error.message));
  }
});

test('searches of memories do not see vectors, and Mastra takes the store', async () => {
  await store.createIndex({ indexName: 'hidden', dimension });
  await store.upsert({ indexName: 'hidden', vectors: [axis(0)], metadata: [{ text: 'Gorgonzola is hidden here.' }] });
  const found = await memoranda.memories.search({ query: 'Gorgonzola', mode: 'words' });
  assert.deepEqual(found.results, []);
  assert.ok(store instanceof MastraVector);
  assert.equal(new Mastra({ vectors: { memory: store } }).getVector('memory'), store);
});
