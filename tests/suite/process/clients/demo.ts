// Runs the demo with types that openapi-typescript has made of the description, and openapi-fetch.
//
// Takes the address of the service; prints the answer of the agent when everything was as its types say.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Event = components["schemas"]["Event"];

const question = "What is 17 * 23?";
const client = createClient<paths>({ baseUrl: process.argv[2] });

/** Yields the events of a run as they come. */
async function* follow(run_id: string): AsyncGenerator<Event> {
  const { response, error } = await client.GET("/v1/runs/{run_id}/events", {
    params: { path: { run_id } },
    parseAs: "stream",
  });
  assert(response.body, `no events: ${JSON.stringify(error)}`);
  let text = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (text + piece).split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data: ")) yield JSON.parse(line.slice("data: ".length)) as Event;
    }
  }
}

const accepted = await client.POST("/v1/runs", {
  body: { agent: "demo", input: question, mode: "async" },
});
assert.equal(accepted.response.status, 202);
assert(accepted.data);
const { run_id } = accepted.data;

let spoken = "";
let result = "";
let ended: components["schemas"]["Run"] | undefined;
for await (const event of follow(run_id)) {
  assert.equal(event.run_id, run_id);
  // The type of an event tells the compiler what its data are.
  switch (event.type) {
    case "message.delta":
      spoken += event.data.text;
      break;
    case "tool_call.completed": {
      const [part] = event.data.content;
      if (part?.type === "text") result = part.text;
      break;
    }
    case "run.completed":
      ended = event.data;
      break;
  }
}
assert.equal(result, "391");
assert.equal(ended?.output_text, spoken);

const polled = await client.GET("/v1/runs/{run_id}", {
  params: { path: { run_id }, query: { wait: "10s" } },
});
assert.equal(polled.data?.status, "completed");
assert.equal(polled.data.output_text, spoken);

assert.ok(polled.data.session_id);
const session = await client.GET("/v1/sessions/{session_id}", {
  params: { path: { session_id: polled.data.session_id } },
});
const history = session.data?.message_history_state?.messages ?? [];
assert.deepEqual(
  history.map((message) => message.role),
  ["user", "assistant", "tool", "assistant"],
);
assert.equal(session.data?.run_id, run_id);

const refused = await client.POST("/v1/runs", { body: { agent: "nobody", input: question } });
assert.equal(refused.error?.code, "agent_not_found");

console.log(spoken);
