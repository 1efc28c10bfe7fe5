// The scenarios with the client `openai` for Node.js.

import { deepEqual, equal, rejects } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';

import { BERN, CITY, play, SKY, WEATHER } from './common.mjs';

const connect = (address) => new OpenAI({ baseURL: address, apiKey: 'none' });
const Report = z.object({ city: z.string(), degrees: z.number().int() });
const unknownModel = { status: 404, code: 'model_not_found', param: 'model' };

async function responses(address) {
  const api = connect(address).responses;
  const first = await api.create({ model: 'plain', instructions: 'Be brief.', input: 'Hello' });
  equal(first.output_text, 'echo: Hello');
  const previous_response_id = first.id;

  const stream = api.stream({ model: 'plain', input: 'And again', previous_response_id });
  let words = '';
  for await (const event of stream) {
    if (event.type === 'response.output_text.delta') words += event.delta;
  }
  equal(words, 'echo: And again');
  equal((await stream.finalResponse()).output_text, words);

  const fork = await api.create({ model: 'plain', input: 'Another way', previous_response_id });
  equal(fork.output_text, 'echo: Another way');
  const computed = await api.create({ model: 'toolbox', input: 'compute' });
  equal(computed.output_text, 'It is 42.');
  deepEqual(computed.output.map((item) => item.type), ['mcp_call', 'message']);

  const tools = [{ type: 'function', name: 'weather', description: WEATHER, parameters: CITY, strict: true }];
  const asked = await api.create({ model: 'plain', input: 'weather', tools });
  const [call] = asked.output;
  deepEqual([call.name, JSON.parse(call.arguments)], ['weather', { city: 'Bern' }]);
  const output = { type: 'function_call_output', call_id: call.call_id, output: SKY };
  const answered = await api.create({ model: 'plain', input: [output], tools, previous_response_id: asked.id });
  equal(answered.output_text, 'The tool said: sunny');

  const format = zodTextFormat(Report, 'report');
  const report = await api.parse({ model: 'plain', input: 'structured', text: { format } });
  deepEqual(report.output_parsed, BERN);
  await rejects(api.create({ model: 'nobody', input: 'Hello' }), unknownModel);

  const history = [{ role: 'user', content: 'Remember 17' }];
  history.push(...(await api.create({ model: 'plain', input: history })).output);
  history.push({ role: 'user', content: 'And now?' });
  equal((await api.create({ model: 'plain', input: history })).output_text, 'echo: And now?');
}

async function chat(address) {
  const api = connect(address).chat.completions;
  const messages = [{ role: 'user', content: 'Hello' }];
  const first = await api.create({ model: 'plain', messages });
  equal(first.choices[0].message.content, 'echo: Hello');

  messages.push(first.choices[0].message, { role: 'user', content: 'And again' });
  let words = '';
  for await (const chunk of await api.create({ model: 'plain', messages, stream: true })) {
    words += chunk.choices[0].delta.content ?? '';
  }
  equal(words, 'echo: And again');

  const compute = [{ role: 'user', content: 'compute' }];
  const computed = await api.create({ model: 'toolbox', messages: compute });
  equal(computed.choices[0].message.content, 'It is 42.');

  const execute = (city) => {
    deepEqual(city, { city: 'Bern' });
    return SKY;
  };
  const definition = { name: 'weather', description: WEATHER, parameters: CITY, parse: JSON.parse, function: execute };
  const tools = [{ type: 'function', function: definition }];
  const runner = api.runTools({ model: 'plain', messages: [{ role: 'user', content: 'weather' }], tools });
  equal(await runner.finalContent(), 'The tool said: sunny');

  const response_format = zodResponseFormat(Report, 'report');
  const structured = [{ role: 'user', content: 'structured' }];
  const report = await api.parse({ model: 'plain', messages: structured, response_format });
  deepEqual(report.choices[0].message.parsed, BERN);
  await rejects(api.create({ model: 'nobody', messages: structured }), unknownModel);
}

async function cancel(address) {
  const api = connect(address).responses;
  const { id } = await api.create({ model: 'plain', input: 'wait', background: true });
  const until = async (status) => {
    const deadline = Date.now() + 30_000;
    while ((await api.retrieve(id)).status !== status) {
      if (Date.now() > deadline) throw new Error(`the response is never ${status}`);
      await sleep(20);
    }
  };
  await until('in_progress');
  await api.cancel(id);
  await until('cancelled');
}

async function retry(address) {
  const client = connect(address);
  // The response to the first request is lost, and the client sends it again under the same key.
  client.idempotencyHeader = 'Idempotency-Key';
  const response = await client.responses.create({ model: 'plain', input: 'drop me' });
  equal(response.output_text, 'echo: drop me');
}

await play({ responses, chat, cancel, retry });
