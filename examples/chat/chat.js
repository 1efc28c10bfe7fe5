// The chat page: shows a thread, sends messages, and follows the run that is active on the thread.

import { all, path, post, Problem, put, send, settings } from './api.js';
import { endOf } from './branches.js';
import { CLIENT_TOOLS, makeForms } from './calls.js';
import { showFiles, upload } from './files.js';
import { drawTurn } from './history.js';
import { readEvents } from './sse.js';
import { NEW, readThread } from './thread.js';
import { Answer } from './turn.js';
import { $, announce, attempt, h, onSubmit, replace, showError, stayAtEnd, textOf } from './view.js';

/** The thread that the page shows. Its name is in the address. */
let thread = NEW;
/** Whether a run is active, and its id as soon as it is known. */
let [isBusy, run] = [false, null];
/** Ends the requests for the thread when another one is shown, or it is read again. */
let requests = new AbortController();

/** Shows the thread in the address, and follows its active run to the end. */
async function load(isRetry = false) {
  const signal = renewRequests();
  try {
    const name = decodeURIComponent(location.hash.slice(1));
    thread = { ...NEW, name };
    if (name) thread = await readThread(name, signal);
    if (isRetry) showError(null);
    const { active } = thread;
    setBusy(active, active?.run_id);
    draw();
    const end = active && watch(send('GET', path`/v1/runs/${run}/events`, { signal }), sessionStorage.getItem(run));
    await Promise.all([showThreads(signal), showFiles(thread, signal), end]);
    if (active) await load();
  } catch (error) {
    if (signal.aborted) return;
    if (run && !(error instanceof Problem)) return retry(error, signal);
    setBusy(false);
    showError(error);
  }
}

/** Reads the thread again after a lost connection. The run goes on, and has all its events. */
async function retry(error, signal) {
  if ($('problem').hidden) showError(error);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  if (!signal.aborted) await load(true);
}

/**
 * Starts a run on the thread, follows it to the end, and reads the thread again.
 * @param at The turn that the run replaces. By default it comes after the last one.
 */
async function start(fields, at = thread.turns.length) {
  if (isBusy) return;
  const signal = renewRequests();
  const words = fields.input ? textOf(fields.input[0].content) : '';
  setBusy(true);
  showError(null);
  $('spoken').replaceChildren();
  $('log').focus();
  try {
    await makeThread(words);
    thread.turns.splice(at).forEach((turn) => turn.element.remove());
    $('log').querySelectorAll('.ask, .error').forEach((element) => element.remove());
    const body = { thread: thread.name, mode: 'stream', client_tools: CLIENT_TOOLS, ...fields };
    // With the key, the run survives the loss of the connection, and of its process.
    const idempotencyKey = crypto.randomUUID();
    const last = await watch(send('POST', '/v1/runs', { body, idempotencyKey, signal }), words);
    if (['run.failed', 'run.cancelled'].includes(last.type)) $('message').value ||= words;
  } catch (error) {
    if (signal.aborted) return;
    if (run) return retry(error, signal);
    showError(error);
    $('message').value ||= words;
  }
  await load();
}

/** Sends a message. In place of answers, it denies the open calls. */
const sendMessage = (content, more, at) => start(
  { agent: $('agent').value || undefined, input: [{ role: 'user', content }], deny_open: true, ...more }, at);

/** Begins another branch: sends a message from the session before a turn. */
const sendAgain = (turn, content) => sendMessage(content,
  { thread_from: { session_id: turn.first.parent_session_id } }, thread.turns.indexOf(turn));

/** Points the thread to the end of another branch. */
async function showVersion(session) {
  const { session_id } = endOf(session, thread.sessions);
  await put(path`/v1/threads/${thread.name}`, { session_id, expected_session_id: thread.tip });
  await load();
}

/**
 * Shows the events of a run, and returns the last one.
 * @param words What the user has said: nothing with answers, and null if that is unknown.
 */
async function watch(response, words) {
  const answer = addAnswer(words);
  let last;
  for await (const event of readEvents(await response)) {
    if (!last) setBusy(true, event.run_id);
    // The service does not show the input of an active run. After a reload the page needs it.
    if (!last && words !== null) sessionStorage.setItem(run, words);
    // A number that comes again takes back the event that had it, and all later ones.
    if (event.sequence <= last?.sequence) throw new Error('The run begins again.');
    stayAtEnd(() => answer.showEvent(event));
    last = event;
  }
  sessionStorage.removeItem(run);
  return last;
}

/** Adds what a run is going to write: to the last turn if it has answers, else to a new turn. */
function addAnswer(words) {
  const last = words === '' && thread.turns.at(-1);
  const answer = new Answer(last?.calls);
  const turn = last?.element
    ?? h('section', { className: 'turn' }, words && h('div', { className: 'words user' }, words));
  turn.querySelector('.foot')?.remove();
  turn.append(answer.element);
  $('log').append(turn);
  $('log').scrollTop = $('log').scrollHeight;
  return answer;
}

/** Draws the history of the thread, and what the thread waits for. */
function draw() {
  const { turns, calls, error } = thread;
  $('agent').value = thread.agent ?? localStorage.getItem('agent') ?? $('agent').options[0]?.value;
  const forms = calls.length ? makeForms(calls, (answers) => start({ answers })) : [];
  if (forms.length) announce('The agent waits for you.');
  const sections = turns.map((turn, index) => drawTurn(turn, index, { sendAgain, showVersion }));
  const note = error ? [h('p', { className: 'error', role: 'alert' }, error)] : [];
  stayAtEnd(() => replace($('log'), ...sections, ...forms, ...note));
}

async function makeThread(title) {
  if (thread.name) return;
  const { name } = await post('/v1/threads', { title: title.trim().slice(0, 60) || 'Chat' });
  history.pushState(null, '', path`#${name}`);
  thread = { ...thread, name };
  await showThreads(requests.signal);
}

async function showThreads(signal) {
  const { data } = await all('/v1/threads', signal);
  data.sort((one, other) => (one.updated_at < other.updated_at ? 1 : -1));
  replace($('threads'), ...data.map(({ name, title }) => h('li', {}, h('a', {
    href: path`#${name}`, id: `thread-${name}`, ariaCurrent: name === thread.name ? 'page' : null,
  }, title ?? name))));
}

async function showAgents() {
  const { data } = await all('/v1/agents');
  $('agent').replaceChildren(...data.map(({ name, description }) =>
    h('option', { value: name, title: description ?? '' }, name)));
}

function renewRequests() {
  requests.abort();
  requests = new AbortController();
  return requests.signal;
}

function setBusy(value, id) {
  [isBusy, run] = [Boolean(value), id];
  $('log').classList.toggle('busy', isBusy);
  $('send').hidden = isBusy;
  $('stop').hidden = !isBusy;
  $('stop').disabled = !id;
}

onSubmit($('composer'), () => {
  if (isBusy) return;
  sendMessage([{ type: 'text', text: $('message').value }]);
  $('message').value = '';
  $('message').focus();
});

$('message').onkeydown = (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $('composer').requestSubmit();
};

$('stop').onclick = () => attempt(() => send('POST', path`/v1/runs/${run}/stop`));
$('agent').onchange = () => localStorage.setItem('agent', $('agent').value);

$('upload').onchange = () => attempt(async () => {
  const [file] = $('upload').files;
  $('upload').value = '';
  showError(null);
  await makeThread(file.name);
  await upload(thread, $('agent').value, file);
  await load();
});

[$('url').defaultValue, $('key').defaultValue] = [settings.url, settings.key];
$('open-settings').onclick = () => $('settings').showModal();
$('settings').onclose = () => {
  if ($('settings').returnValue !== 'save') return $('settings').firstElementChild.reset();
  [settings.url, settings.key] = [$('url').value, $('key').value];
  location.reload();
};

// On a narrow window, the list covers the chat.
$('chats').onclick = (event) => event.target.closest('a') && $('chats').hidePopover();

addEventListener('hashchange', () => {
  showError(null);
  $('log').replaceChildren();
  load();
});

await attempt(showAgents);
await load();
