// The page of a customer: an `HttpAgent` of AG-UI, which tests control through `window.chat`.
//
// The query has the address `url` of the agent, the `thread`, a `key` of the service, and
// `parameters` of all runs. With `no=hydration` the page stores its messages by itself instead of
// loading them from the service, with `no=history` it sends only new messages.

import { HttpAgent } from '@ag-ui/client';

const { url, thread, key, parameters, no } = Object.fromEntries(new URLSearchParams(location.search));
const storesMessages = no.includes('hydration');
const agent = new HttpAgent({
  url, threadId: thread, headers: key ? { authorization: `Bearer ${key}` } : {},
  initialMessages: storesMessages ? JSON.parse(sessionStorage.getItem(thread) ?? '[]') : [],
});
const runs = [];
let added = [];

// The client drops what its protocol does not have, and warns.
console.warn = (words) => { throw new Error(words); };

// The client reads on after the loss of a connection.
addEventListener('unhandledrejection', (event) => {
  if (event.reason.message === 'network error') event.preventDefault();
});

if (storesMessages) {
  const onMessagesChanged = () => sessionStorage.setItem(thread, JSON.stringify(agent.messages));
  agent.subscribe({ onMessagesChanged });
}
if (no.includes('history')) {
  agent.use((input, next) => {
    const partial = { ...input, messages: added };
    runs.at(-1).input = partial;
    return next.run(partial);
  });
}

/** Removes the messages after the first ones, adds others, and starts a run. */
function go({ first = agent.messages.length, add = [], state = agent.state, ...more }) {
  agent.setMessages([...agent.messages.slice(0, first), ...add]);
  agent.setState(state);
  added = add;
  const run = { events: [] };
  runs.push(run);
  const subscriber = {
    onRunInitialized: ({ input }) => void (run.input = input),
    onEvent: ({ event }) => void run.events.push(event),
    // An abort is no error of the service.
    onRunErrorEvent: ({ event }) => void (run.error = event.code === 'abort' ? undefined : event.message),
    onRunFailed({ error }) {
      run.error = error.message;
      return { stopPropagation: true };
    },
  };
  const fail = ({ message }) => { run.error = message; };
  const all = { ...JSON.parse(parameters), ...more };
  agent.runAgent(all, subscriber).catch(fail).finally(() => { run.hasEnded = true; });
}

if (!storesMessages) go({});
window.chat = {
  go,
  state: () => ({ messages: agent.messages, state: agent.state, runs }),
  abort: () => agent.abortRun(),
};
