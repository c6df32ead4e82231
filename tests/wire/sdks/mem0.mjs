// The cases of the `mem0ai` package.
import assert from 'node:assert/strict';
import { MemoryClient } from 'mem0ai';
import { URL, play, refused } from './cases.mjs';

const client = new MemoryClient({ host: URL, apiKey: 'key-app' });
const texts = answer => answer.results.map(memory => memory.memory);
const said = text => [{ role: 'user', content: text }];

await play({
  async texts() {
    const filters = { user_id: 'nod' };
    const kept = await client.add(said('the door is open'), { userId: 'nod', infer: false, metadata: { a: 1 } });
    assert.equal(kept.status, 'SUCCEEDED');
    assert.ok(kept.eventId);
    const [{ id }] = kept.results;
    assert.deepEqual(texts(await client.search('door', { filters, threshold: 0 })), ['the door is open']);
    assert.deepEqual(texts(await client.getAll({ filters, page: 1, pageSize: 5 })), ['the door is open']);
    assert.deepEqual((await client.get(id)).metadata, { a: 1 });
    assert.equal((await client.update(id, { text: 'the door is shut' })).memory, 'the door is shut');
    assert.equal((await client.history(id))[0].newMemory, 'the door is shut');
    await client.batchUpdate([{ memoryId: id, text: 'the door is gone' }]);
    assert.deepEqual(texts(await client.getAll({ filters })), ['the door is gone']);
    await client.delete(id);
    assert.equal((await refused(client.get(id))).name, 'MemoryNotFoundError');
  },

  async facts() {
    const made = await client.add(said('I am Eve and I live in Lisbon.'), { userId: 'eve', runId: 'hello' });
    assert.deepEqual(made.results.map(one => [one.event, one.memory]), [['ADD', 'Eve lives in Lisbon']]);
    assert.ok((await client.users()).results.some(one => one.type === 'run' && one.name === 'hello'));
    await client.deleteUsers({ userId: 'eve' });
    assert.deepEqual(texts(await client.getAll({ filters: { user_id: 'eve' } })), []);
  },

  async all() {
    await client.add(said('one more'), { agentId: 'cook', infer: false });
    await client.deleteAll({ agentId: 'cook' });
    assert.deepEqual(texts(await client.getAll({ filters: { agent_id: 'cook' } })), []);
  },

  async refused() {
    const error = await refused(client.search('x', { filters: { user_id: 'nod' }, referenceDate: '2024-01-01' }));
    assert.match(error.message, /reference_date/);
  },
});
