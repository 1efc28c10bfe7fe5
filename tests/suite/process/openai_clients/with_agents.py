"""The scenarios with `openai-agents`, the Agents SDK."""

import asyncio

import openai
import pydantic
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIConversationsSession,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from common import BERN, SKY, equal, play

# It would send traces to OpenAI.
set_tracing_disabled(True)


class Report(pydantic.BaseModel):
    city: str
    degrees: int


@function_tool
def weather(city: str) -> str:
    """Returns the weather of a city."""
    assert city == "Bern", city
    return SKY


def responses(address):
    asyncio.run(steps(address, OpenAIResponsesModel, True))


def chat(address):
    asyncio.run(steps(address, OpenAIChatCompletionsModel, False))


async def steps(address, model_class, has_state):
    client = openai.AsyncOpenAI(base_url=address, api_key="none")

    def agent(model="plain", **settings):
        return Agent(name="test", model=model_class(model=model, openai_client=client), **settings)

    instructions = "Be brief." if has_state else None
    first = await Runner.run(agent(instructions=instructions), "Hello")
    equal(first.final_output, "echo: Hello")

    def further(text):
        if has_state:
            return {"input": text, "previous_response_id": first.last_response_id}
        return {"input": [*first.to_input_list(), {"role": "user", "content": text}]}

    streamed = Runner.run_streamed(agent(), **further("And again"))
    events = [event async for event in streamed.stream_events() if event.type == "raw_response_event"]
    deltas = [event.data.delta for event in events if event.data.type == "response.output_text.delta"]
    equal("".join(deltas), "echo: And again")
    if has_state:
        equal((await Runner.run(agent(), **further("Another way"))).final_output, "echo: Another way")

    equal((await Runner.run(agent("toolbox"), "compute")).final_output, "It is 42.")
    equal((await Runner.run(agent(tools=[weather]), "weather")).final_output, "The tool said: sunny")
    report = await Runner.run(agent(output_type=Report), "structured")
    equal(report.final_output, Report(**BERN))
    try:
        await Runner.run(agent("nobody"), "Hello")
    except openai.NotFoundError as error:
        equal(error.code, "model_not_found")
    else:
        raise AssertionError("a model that does not exist")

    if has_state:
        remembered = await Runner.run(agent(), "Remember 17")
        history = [*remembered.to_input_list(), {"role": "user", "content": "And now?"}]
        equal((await Runner.run(agent(), history)).final_output, "echo: And now?")


def session(address):
    asyncio.run(remembered(address))


async def remembered(address):
    client = openai.AsyncOpenAI(base_url=address, api_key="none")
    memory = OpenAIConversationsSession(openai_client=client)

    async def say(text, model="plain", **settings):
        agent = Agent(name="test", model=OpenAIResponsesModel(model=model, openai_client=client), **settings)
        return (await Runner.run(agent, text, session=memory)).final_output

    equal(await say("Hello"), "echo: Hello")
    equal(await say("compute", "toolbox"), "It is 42.")
    equal(await say("weather", tools=[weather]), "The tool said: sunny")
    kinds = [item["type"] for item in await memory.get_items()]
    called = ["message", "mcp_call", "message", "message", "function_call", "function_call_output", "message"]
    equal(kinds, ["message", "message", *called])
    popped = await memory.pop_item()
    equal(popped["content"][0]["text"], "The tool said: sunny")
    equal(await say("And again"), "echo: And again")
    print(memory.session_id)
    await memory.clear_session()


play([responses, chat, session])
