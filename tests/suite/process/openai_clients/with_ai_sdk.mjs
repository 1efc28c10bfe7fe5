// The scenarios with Vercel's AI SDK: `ai` and `@ai-sdk/openai`.

import { deepEqual, equal, rejects } from 'node:assert/strict';

import { createOpenAI } from '@ai-sdk/openai';
import { generateText, Output, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

import { BERN, play, SKY, WEATHER } from './common.mjs';

const user = (content) => ({ role: 'user', content });
const tools = {
  weather: tool({
    description: WEATHER,
    inputSchema: z.object({ city: z.string() }),
    execute: async (input) => {
      deepEqual(input, { city: 'Bern' });
      return SKY;
    },
  }),
};

async function responses(address) {
  const openai = createOpenAI({ baseURL: address, apiKey: 'none' });
  const model = openai.responses('plain');
  const options = (openai) => ({ providerOptions: { openai } });

  const first = await generateText({ model, prompt: 'Hello', ...options({ instructions: 'Be brief.' }) });
  equal(first.text, 'echo: Hello');
  const continued = options({ previousResponseId: first.providerMetadata.openai.responseId });
  equal(await streamed({ model, prompt: 'And again', ...continued }), 'echo: And again');
  equal((await generateText({ model, prompt: 'Another way', ...continued })).text, 'echo: Another way');
  await further(openai.responses, model);

  // It names the messages of the first turn by their ids.
  const remembered = await generateText({ model, prompt: 'Remember 17' });
  const messages = [user('Remember 17'), ...remembered.response.messages, user('And now?')];
  equal((await generateText({ model, messages })).text, 'echo: And now?');
}

async function chat(address) {
  const openai = createOpenAI({ baseURL: address, apiKey: 'none' });
  const model = openai.chat('plain');
  const first = await generateText({ model, prompt: 'Hello' });
  equal(first.text, 'echo: Hello');
  const messages = [user('Hello'), ...first.response.messages, user('And again')];
  equal(await streamed({ model, messages }), 'echo: And again');
  await further(openai.chat, model);
}

/** The steps that are the same in both protocols. */
async function further(modelOf, model) {
  equal((await generateText({ model: modelOf('toolbox'), prompt: 'compute' })).text, 'It is 42.');
  const answered = await generateText({ model, prompt: 'weather', tools, stopWhen: stepCountIs(2) });
  equal(answered.text, 'The tool said: sunny');
  const schema = z.object({ city: z.string(), degrees: z.number().int() });
  const report = await generateText({ model, prompt: 'structured', output: Output.object({ schema }) });
  deepEqual(report.output, BERN);
  await rejects(generateText({ model: modelOf('nobody'), prompt: 'Hello' }), { statusCode: 404 });
}

async function streamed(request) {
  let words = '';
  for await (const piece of streamText(request).textStream) words += piece;
  return words;
}

await play({ responses, chat });
