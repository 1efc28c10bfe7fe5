// What the checks and the pictures of the console show: agents, a tree of sessions, and runs of each kind.

import { readFileSync } from 'node:fs';

const data = JSON.parse(readFileSync(new URL('seed.json', import.meta.url), 'utf8'));

/** What no page may take for anything but text. */
export const HOSTILE = '<img src=x onerror="window.attacked=1"><script>window.attacked=1</script> \u202egnp.exe\u202c '
  + '[a](javascript:window.attacked=1) <javascript:window.attacked=1> \u001b[31mred "><svg onload=window.attacked=1> '
  + 'a\u200bb\u2800\u115f\u{e0041}';
const LONG_LINE = 'long '.repeat(1 << 20);

/** The completions for tasks that begin with a word. */
const TALK = {
  Watch: () => ({ say: 'One, two, three.', hold: true }),
  Write: ({ step, results }) => step ? { say: `The tool said: ${results[0]}` }
    : { say: 'May I write it?', calls: [['write_file', { path: 'report.md', content: '# Report\n\n391\n' }]] },
  Count: ({ step, task }) => step === Number(task.split(' ')[1]) ? { say: 'Counted.' }
    : { calls: [['calculator', { expression: `${step} + 1` }]] },
  Fail: () => ({ fails: true }),
  Attack: ({ step }) => step ? { think: HOSTILE, say: `${HOSTILE}\n\n| a |\n|---|\n| ${HOSTILE} |\n\n${LONG_LINE}` }
    : { say: HOSTILE, calls: [['calculator', { expression: HOSTILE }],
      ['write_file', { path: 'attack.html', content: HOSTILE + LONG_LINE }]] },
};
export const SCRIPTS = {
  code: ({ step }) => data.code[step],
  review: ({ step }) => data.review[step],
  talk: (turn) => TALK[turn.task.split(' ')[0]]?.(turn) ?? { say: `Done: ${turn.task.toLowerCase()}.`, after: 0.1 },
};

export async function makeAgents(service) {
  for (const [name, agent] of Object.entries(data.agents)) await service.send('PUT', `/v1/agents/${name}`, agent);
}

const point = (service, thread, session) =>
  service.send('PUT', `/v1/threads/${thread}`, { session_id: session });

/** Makes agents, sessions and runs. Returns the values of the parameters in the paths of pages. */
export async function seed(service) {
  const { editor } = data.agents;
  await service.send('PUT', '/v1/agents/editor', { ...editor, description: HOSTILE, system_prompt: HOSTILE });
  await makeAgents(service);
  const post = async (path, body) => (await service.send('POST', `/v1/sessions${path}`, body)).session_id;
  const write = (at, files) =>
    post(`/${at}/files`, { changes: Object.entries(files).map(([path, content]) => ({ path, content })) });
  const made = {};
  for (const [name, before, title] of data.turns) {
    const more = { base_session_id: made[before], metadata: { title } };
    made[name] = (await service.run(before ? undefined : 'editor', title, more)).session_id;
  }
  const notes = await write(made.legal, { 'notes.md': '# 2.4\n\n- Runs with files start in a third of the time.\n' });
  const merge = await post(`/${notes}/merge`, { with: await write(made.quote, { 'quotes.md': '> It just works.\n' }) });
  await point(service, 'notes-2.4', merge);
  await point(service, 'german', made.german);

  const shop = await post('', { agent: 'coder', context_state: { metadata: { title: 'shop: refunds' } } });
  const base = await write(shop, data.files);
  const facts = { base_session_id: base, metadata: { title: 'Refunds a day late', customer: 'acme' } };
  const waiting = await service.run('coder', data.task, facts);
  const failed = await service.run('editor', 'Fail to write the notes');
  const asked = await service.run('secretary', 'Write the report');
  return {
    runs: [waiting, failed, asked].map(({ run_id: id }) => [id]), sessions: [[waiting.session_id], [merge]],
    trees: [[made.plan]], compare: [[base, waiting.session_id], [made.german, merge]],
    agents: [['coder'], ['editor']], threads: [['notes-2.4'], ['german']],
  };
}

/** Makes a session that attacks its readers, and adds it to the values. Returns its ids. */
export async function attack(service, values) {
  const metadata = { title: HOSTILE, [HOSTILE]: HOSTILE };
  const { run_id: run, session_id: session } = await service.run('editor', 'Attack the console', { metadata });
  await point(service, 'attack:1', session);
  const compare = [values.trees[0][0], session];
  const more = { runs: [run], sessions: [session], trees: [session], compare, threads: ['attack:1'] };
  for (const [name, list] of Object.entries(more)) values[name].push(list);
  return [run, session];
}
