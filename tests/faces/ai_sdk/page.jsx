// The page of a customer: the hook `useChat`, with a button for each of its actions.
//
// The query has the address `api`, the `id` of the chat and a `key` of the service. With `no=resume`
// the page does not resume streams, with `no=answers` it answers no call without a click.

import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport, getToolName, isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from 'ai';
import { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';

const { api, id, key, no = '' } = Object.fromEntries(new URLSearchParams(location.search));
const headers = key ? { authorization: `Bearer ${key}` } : {};
const transport = new DefaultChatTransport({ api, headers });
/** The address of the chat itself. */
const chat = `${api.split('?')[0]}/${encodeURIComponent(id)}`;

/** Executes a call of the tool `locate`. */
const locate = ({ toolCallId, input }) => ({
  tool: 'locate', toolCallId,
  ...(input.indoors ? { state: 'output-error', errorText: 'No signal' } : { output: { city: 'Bern' } }),
});

function Page({ messages: before }) {
  const [words, setWords] = useState('');
  const { messages, status, error, ...actions } = useChat({
    id, messages: before, transport, resume: !no.includes('resume'),
    onToolCall({ toolCall }) {
      if (toolCall.toolName === 'locate' && !no.includes('answers')) actions.addToolOutput(locate(toolCall));
    },
    sendAutomaticallyWhen: (all) => lastAssistantMessageIsCompleteWithToolCalls(all)
      || lastAssistantMessageIsCompleteWithApprovalResponses(all),
  });
  // Tests read it.
  useEffect(() => void (window.chat = { messages, status, error: error?.message }));
  const send = (messageId) => {
    actions.sendMessage({ text: words, messageId });
    setWords('');
  };
  return (
    <main>
      {messages.map((message) => (
        <article key={message.id} id={message.id}>
          <h2>{message.role}</h2>
          {message.parts.map((part, at) => <Part key={at} part={part} {...actions} />)}
          {message.role === 'user'
            ? <button onClick={() => send(message.id)}>Edit</button>
            : <button onClick={() => actions.regenerate({ messageId: message.id })}>Regenerate</button>}
        </article>
      ))}
      <p role="status">{status}</p>
      {error && <p role="alert">{error.message}</p>}
      <textarea value={words} onChange={(change) => setWords(change.target.value)} />
      <button onClick={() => send()}>Send</button>
      <button onClick={() => actions.regenerate()}>Again</button>
      <button onClick={actions.stop}>Disconnect</button>
      <button onClick={() => fetch(`${chat}/stop`, { method: 'POST', headers })}>Stop</button>
      <button onClick={() => actions.resumeStream()}>Resume</button>
    </main>
  );
}

function Part({ part, addToolOutput, addToolApprovalResponse }) {
  if (!isToolUIPart(part)) return part.text ? <p className={part.type}>{part.text}</p> : null;
  const { state, input, output, errorText, approval } = part;
  const decide = (approved) => addToolApprovalResponse({
    id: approval.id, approved, reason: approved ? undefined : 'Not today',
  });
  return (
    <section>
      <h3>{`${getToolName(part)}: ${state}`}</h3>
      <pre>{JSON.stringify({ input, output, errorText }, null, 2)}</pre>
      {state === 'approval-requested' && <button onClick={() => decide(true)}>Approve</button>}
      {state === 'approval-requested' && <button onClick={() => decide(false)}>Deny</button>}
      {state === 'input-available' && getToolName(part) === 'locate'
        && <button onClick={() => addToolOutput(locate(part))}>Locate</button>}
    </section>
  );
}

const response = await fetch(`${chat}/messages`, { headers });
const messages = response.ok ? await response.json() : [];
createRoot(document.querySelector('#app')).render(<Page messages={messages} />);
