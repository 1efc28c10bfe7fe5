// One form for conversations, whether a model reads them or the service stores them: a line for
// each message, and for each result of a call.
//
//   user: What is 17 * 23?
//   assistant: Let me see. calculator({"expression":"17 * 23"})
//   tool: 391

/** Returns the lines of messages of OpenAI or of the service, without reasoning and prompts. */
export const talkOf = (messages) => messages.filter(({ role }) => role !== 'system').flatMap(linesOf);

function linesOf({ role, content, tool_calls: calls = [] }) {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content ?? [];
  const results = parts.filter(({ type }) => type === 'tool_result');
  if (results.length) return results.map((result) => `tool: ${textOf(result.content)}`);
  const called = [...parts.filter(({ type }) => type === 'tool_call'), ...calls.map((call) => call.function)];
  const words = [textOf(parts), ...called.map((call) => `${call.name}(${call.arguments})`)];
  return [`${role}: ${words.filter(Boolean).join(' ')}`];
}

const textOf = (parts) => parts.filter(({ type }) => type === 'text').map(({ text }) => text).join('');
