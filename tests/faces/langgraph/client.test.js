// What programs do with the client of LangGraph: agents, threads, states and runs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, LIMIT, prepare, readAll, talkIn } from './graphs.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const { model, graphs, client } = await prepare();

/** Starts a run, plays its completion, and returns the result. */
const play = async (run, words) => (await Promise.all([run, model.play(words)]))[0];
const turn = (id, question, words, more) => play(graphs.wait(id, { ...ask(question), ...more }), words);

test('an agent is an assistant, by its name or its id', LIMIT, async () => {
  const [assistant, ...others] = await client.assistants.search({ graphId: 'assistant' });
  const { assistant_id: id, graph_id: graph, name } = assistant;
  assert.deepEqual([graph, name, others], ['assistant', 'assistant', []]);
  assert.match(id, UUID);
  assert.deepEqual(await client.assistants.search({ graphId: 'nobody' }), []);
  for (const one of [id, graph]) {
    assert.deepEqual(await client.assistants.get(one), assistant);
    assert.equal((await client.assistants.getSchemas(one)).graph_id, graph);
  }
  const thread = await graphs.make();
  const values = await play(client.runs.wait(thread, id, ask('Hi')), 'Hello');
  assert.deepEqual(talkIn(values.messages), ['user: Hi', 'assistant: Hello']);
  for (const metadata of [{ graph_id: graph }, { assistant_id: id }]) {
    assert.equal((await client.threads.search({ metadata, limit: 100 }))[0].thread_id, thread);
  }
  await graphs.refuse(thread, () => client.assistants.get('nobody'), 404);
  await graphs.refuse(thread, () => client.runs.wait(thread, 'nobody', ask('Hi')), 404, 422);
});

test('a thread is made, found, changed and deleted', LIMIT, async () => {
  const id = graphs.newId();
  await graphs.refuse(id, () => graphs.wait(id, ask('Hi')), 404);
  const thread = await client.threads.create({ threadId: id, metadata: { user: 'ada' } });
  assert.deepEqual([thread.thread_id, thread.status, thread.metadata.user], [id, 'idle', 'ada']);
  assert.deepEqual(await client.threads.get(id), thread);
  await graphs.refuse(id, () => client.threads.create({ threadId: id }), 409);
  assert.deepEqual(await client.threads.create({ threadId: id, ifExists: 'do_nothing' }), thread);
  const { values, next, tasks } = await client.threads.getState(id);
  assert.deepEqual([values.messages, next, tasks], [[], [], []]);
  await client.threads.update(id, { metadata: { topic: 'sums' } });
  await turn(id, 'Hi', 'Hello');
  for (const query of [{ metadata: { user: 'ada', topic: 'sums' } }, { ids: [id] }, { status: 'idle', ids: [id] }]) {
    const [found, ...others] = await client.threads.search(query);
    assert.deepEqual([found.thread_id, talkIn(found.values.messages), others], [id, ['user: Hi'], []]);
  }
  await client.threads.delete(id);
  await assert.rejects(client.threads.get(id), { status: 404 });
  await assert.rejects(client.threads.getHistory(id), { status: 404 });
  await turn(id, 'Hi', 'Hello', { ifNotExists: 'create' });
  assert.equal((await client.threads.get(id)).status, 'idle');
});

test('a history has a state before and after each answer, the newest first', LIMIT, async () => {
  const id = await graphs.make();
  await turn(id, 'One?', 'One.');
  await turn(id, 'Two?', 'Two.');
  const states = await client.threads.getHistory(id);
  const talk = ['user: One?', 'assistant: One.', 'user: Two?', 'assistant: Two.'];
  assert.deepEqual(states.slice(0, 4).map(({ values }) => talkIn(values.messages)),
    [4, 3, 2, 1].map((count) => talk.slice(0, count)));
  const ids = states.map((state) => state.checkpoint.checkpoint_id);
  assert.deepEqual(states.map((state) => state.parent_checkpoint?.checkpoint_id), [...ids.slice(1), undefined]);
  assert.equal(ids[0], (await graphs.session(id)).session_id);
  assert.deepEqual(await client.threads.getState(id), states[0]);
  for (const { values, checkpoint, next, tasks } of states.slice(0, 4)) {
    assert.deepEqual([checkpoint.thread_id, checkpoint.checkpoint_ns, next, tasks], [id, '', [], []]);
    for (const at of [checkpoint, checkpoint.checkpoint_id]) {
      assert.deepEqual((await client.threads.getState(id, at)).values, values);
    }
  }
  assert.deepEqual(await client.threads.getHistory(id, { limit: 1 }), states.slice(0, 1));
  const before = await client.threads.getHistory(id, { before: { configurable: states[1].checkpoint } });
  assert.deepEqual(before, states.slice(2));
  await assert.rejects(client.threads.getState(id, graphs.newId()), { status: 404 });
});

test('a run is created, read, joined and cancelled', LIMIT, async () => {
  const id = await graphs.make();
  const run = await client.runs.create(id, 'assistant', { ...ask('Count'), metadata: { user: 'ada' } });
  assert.deepEqual([run.thread_id, run.metadata.user], [id, 'ada']);
  const reply = await model.next();
  reply.write('One,');
  const joined = client.runs.join(id, run.run_id);
  for await (const { event } of client.runs.joinStream(id, run.run_id)) if (event === 'messages') break;
  assert.equal((await client.runs.get(id, run.run_id)).status, 'running');
  await client.runs.cancel(id, run.run_id, true);
  await reply.closed;
  assert.deepEqual(talkIn((await joined).messages), ['user: Count', 'assistant: One,']);
  assert.equal((await client.runs.get(id, run.run_id)).status, 'interrupted');
  // It has ended already.
  await client.runs.cancel(id, run.run_id);
  const second = await client.runs.create(id, 'assistant', ask('Go on'));
  const lost = await model.next();
  await client.runs.cancel(id, second.run_id, true, 'rollback');
  await lost.closed;
  const { values } = await client.threads.getState(id);
  assert.deepEqual(talkIn(values.messages), ['user: Count', 'assistant: One,']);
  await graphs.refuse(id, () => client.runs.get(id, graphs.newId()), 404);
});

test('a stream has the events of its modes, and is joined at any event', LIMIT, async () => {
  const id = await graphs.make();
  const payload = { ...ask('Hi'), streamMode: ['values', 'messages-tuple', 'updates'] };
  const events = await play(readAll(client.runs.stream(id, 'assistant', payload)), 'Hello');
  const [{ run_id: run }] = await client.runs.list(id);
  const dataOf = (name) => events.filter(({ event }) => event === name).map(({ data }) => data);
  assert.deepEqual([events[0].event, events[0].data.run_id], ['metadata', run]);
  const values = dataOf('values').map(({ messages }) => talkIn(messages));
  assert.deepEqual([values[0], values.at(-1)], [['user: Hi'], ['user: Hi', 'assistant: Hello']]);
  const chunks = dataOf('messages').map(([chunk]) => chunk);
  assert.equal(chunks.map(({ content }) => content).join(''), 'Hello');
  assert.deepEqual([...new Set(chunks.map((chunk) => chunk.id))], [dataOf('values').at(-1).messages[1].id]);
  assert.deepEqual(talkIn(dataOf('updates').flatMap(Object.values).at(-1).messages), ['assistant: Hello']);
  const join = (lastEventId) => readAll(client.runs.joinStream(id, run, { lastEventId }));
  assert.deepEqual(await join('-1'), events);
  for (const at of [0, 2, events.length - 1]) assert.deepEqual(await join(events[at].id), events.slice(at + 1));
  const plain = await play(readAll(client.runs.stream(id, 'assistant', ask('And?'))), 'Well.');
  assert.deepEqual([...new Set(plain.map(({ event }) => event))].slice(0, 2), ['metadata', 'values']);
});

test('a run without a thread leaves none, and its errors are values', LIMIT, async () => {
  const before = await client.threads.search({ limit: 100 });
  const events = await play(readAll(client.runs.stream(null, 'assistant', ask('Hi'))), 'Hello');
  const { data } = events.findLast(({ event }) => event === 'values');
  assert.deepEqual(talkIn(data.messages), ['user: Hi', 'assistant: Hello']);
  const failed = client.runs.wait(null, 'assistant', { ...ask('Hi'), raiseError: false });
  (await model.next()).fail();
  assert.deepEqual(Object.keys((await failed).__error__).sort(), ['error', 'message']);
  assert.deepEqual(await client.threads.search({ limit: 100 }), before);
});
