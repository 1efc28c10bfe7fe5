// Large stores, made through the API: a tree of thousands of sessions, a line of thousands of turns, a run of thousands
// of steps. `large.toml` plays the model.

/** How many sessions of a tree are made at a time. */
const AT_ONCE = 16;
/** The most branches that grow, and the threads of a tree. */
const BRANCHES = 40;
const THREADS = ['main', 'german', 'legal', 'press', 'draft-1', 'draft-2', 'archive', 'next'];
/** Of a hundred sessions, 4 change a file, 4 are merges and 67 are turns. The others fork. */
const SHARES = { file: 4, merge: 8, grow: 75 };

const AGENTS = {
  writer: { model: 'script/word' },
  // A turn reads the messages from the newest summary on, so that the last turn takes no longer than the first.
  talker: {
    model: 'script/word', hooks: [{ name: 'summarisation', config: { context_window: 2000, keep_recent: 2 } }],
  },
  counter: {
    model: 'script/count', tools: ['calculator'], compiler: { kind: 'token_window', max_tokens: 500 },
    budget: { max_steps: 100_000, max_seconds: 3600 },
  },
};

export async function makeLargeAgents(service) {
  for (const [name, agent] of Object.entries(AGENTS)) await service.send('PUT', `/v1/agents/${name}`, agent);
}

const taskOf = (number) => `Write paragraph ${number} of the release notes`;
const runNow = (service, body) => service.send('POST', '/v1/runs', body);

/** Makes a tree with forks, changed files, merges and threads. Returns its root. */
export async function makeTree(service, count) {
  const post = async (path, body) => (await service.send('POST', path, body)).session_id;
  const turn = (base, number) =>
    runNow(service, { agent: 'writer', base_session_id: base, input: taskOf(number) });
  const random = numbers(7);
  const { session_id: root } = await turn(undefined, 1);
  const all = [root];
  const tips = [root];
  while (all.length < count) {
    const acts = [];
    const grown = new Set();
    for (let number = all.length + 1; number <= count && acts.length < AT_ONCE; number++) {
      const share = 100 * random();
      const branch = Math.floor(random() * tips.length);
      const other = tips[Math.floor(random() * tips.length)];
      const tip = tips[branch];
      const grow = async (made) => (tips[branch] = await made);
      const canGrow = share < SHARES.grow && !grown.has(branch);
      if (canGrow) grown.add(branch);
      if (canGrow && share < SHARES.file) {
        const changes = [{ path: `notes/${number}.md`, content: `# Part ${number}\n` }];
        acts.push(grow(post(`/v1/sessions/${tip}/files`, { changes })));
      } else if (canGrow && share < SHARES.merge && tip !== other && all.length > AT_ONCE) {
        acts.push(grow(post(`/v1/sessions/${tip}/merge`, { with: other })));
      } else if (canGrow) {
        acts.push(grow(turn(tip, number).then((run) => run.session_id)));
      } else {
        const base = all[Math.floor(random() * all.length)];
        acts.push(turn(base, number).then(({ session_id: id }) => {
          if (tips.length < BRANCHES) tips.push(id);
          return id;
        }));
      }
    }
    all.push(...await Promise.all(acts));
  }
  for (const [at, name] of THREADS.entries()) {
    await service.send('PUT', `/v1/threads/${name}`, { session_id: tips[(at * 5) % tips.length] });
  }
  return root;
}

/** Makes a line of turns. Returns its last session. */
export async function makeLine(service, turns) {
  let session;
  for (let number = 1; number <= turns; number++) {
    const body = { agent: 'talker', base_session_id: session, input: taskOf(number) };
    session = (await runNow(service, body)).session_id;
  }
  return service.send('GET', `/v1/sessions/${session}?include=`);
}

/** Makes a run of steps, each of which calls a tool. */
export const makeRun = (service, steps) =>
  runNow(service, { agent: 'counter', input: 'Count as long as you may', budget: { max_steps: steps } });

/** Returns a function that returns numbers from 0 to 1, the same ones for the same seed. */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
