// The page of a customer: the hook `useStream`, with the requests of Agent Chat UI. Tests control
// it through `window.chat`.
//
// The query has the address `api`, and may have the `thread` and a `key` of the service. With
// `no=rejoin` the page does not join a run in progress, with `no=tools` it executes no calls.

import { useStream } from '@langchain/langgraph-sdk/react';
import { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';

const query = new URLSearchParams(location.search);
const { api, key: apiKey, no = '' } = Object.fromEntries(query);
const tools = [{
  tool: { name: 'locate' },
  async execute({ indoors }) {
    if (indoors) throw new Error('No signal');
    return { city: 'Bern' };
  },
}];
const resumable = { streamMode: ['values'], streamSubgraphs: true, streamResumable: true };
const runs = [];
let [pending, shown] = [0, []];

// The hook shows its errors, and reports them again.
const report = console.error;
console.error = (error, ...more) => error instanceof Error || report(error, ...more);
addEventListener('unhandledrejection', (event) => /^HTTP 401/.test(event.reason.message) && event.preventDefault());

/** Claims results of calls that are open, as Agent Chat UI does before a message of the user. */
function claim(messages) {
  const open = messages.filter(({ type }, at) => type === 'ai' && messages[at + 1]?.type !== 'tool');
  return open.flatMap((message) => message.tool_calls ?? []).map((call) => ({
    type: 'tool', id: `do-not-render-${crypto.randomUUID()}`, tool_call_id: call.id, name: call.name,
    content: 'Successfully handled tool call.',
  }));
}

function actionsOf(stream) {
  const firstState = (at) => stream.getMessagesMetadata(stream.messages[at], at).firstSeenState;
  const submit = (messages, values, options) => {
    const optimisticValues = () => ({ ...values, messages: [...values.messages ?? [], ...messages] });
    return stream.submit({ messages }, { ...resumable, optimisticValues, ...options });
  };
  return {
    send: (text, options) => submit([
      ...claim(stream.messages), { id: crypto.randomUUID(), type: 'human', content: [{ type: 'text', text }] },
    ], stream.values, options),
    edit(at, content) {
      const { values, parent_checkpoint: checkpoint } = firstState(at);
      return submit([{ type: 'human', content }], values, { checkpoint });
    },
    regenerate: (at) => stream.submit(undefined, { ...resumable, checkpoint: firstState(at).parent_checkpoint }),
    goOn: () => stream.submit(null),
    resume: (resume) => stream.submit({}, { command: { resume } }),
    resolve: () => stream.submit({}, { command: { goto: '__end__' } }),
    switch: (at, to) => stream.setBranch(stream.getMessagesMetadata(stream.messages[at], at).branchOptions[to]),
    stop: () => stream.stop(),
  };
}

function Page() {
  const [threadId, setThread] = useState(query.get('thread'));
  const stream = useStream({
    apiUrl: api, apiKey, assistantId: 'assistant', threadId, fetchStateHistory: true,
    reconnectOnMount: !no.includes('rejoin'), tools: no.includes('tools') ? [] : tools,
    onCreated: ({ run_id: run }) => void runs.push(run),
    onThreadId(id) {
      setThread(id);
      query.set('thread', id);
      history.replaceState(null, '', `?${query}`);
    },
  });
  const { messages, interrupts, isLoading, isThreadLoading, error } = stream;
  const branches = messages.map((message, at) => {
    const { branch, branchOptions: options } = stream.getMessagesMetadata(message, at) ?? {};
    return options ? `${options.indexOf(branch) + 1} / ${options.length}` : null;
  });
  useEffect(() => {
    if (isLoading) shown = messages;
    const state = () => ({
      thread: threadId, messages, branches, interrupts, runs, shown, error: error && `${error.message ?? error}`,
      isLoading: isLoading || isThreadLoading || pending > 0, isThreadLoading,
    });
    const act = (name, ...words) => {
      pending += 1;
      Promise.resolve(actionsOf(stream)[name](...words)).finally(() => { pending -= 1; });
    };
    window.chat = { state, act };
  });
  return <main>{messages.map(({ id, content }) => <p key={id}>{JSON.stringify(content)}</p>)}</main>;
}

createRoot(document.querySelector('#app')).render(<Page />);
