"""The scenarios with `pydantic-ai-slim`."""

import asyncio

import pydantic
from common import BERN, SKY, equal, play
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class Report(pydantic.BaseModel):
    """A report."""

    city: str
    degrees: int


def weather(city: str) -> str:
    """Returns the weather of a city."""
    assert city == "Bern", city
    return SKY


def responses(address):
    asyncio.run(steps(address, OpenAIResponsesModel, True))


def chat(address):
    asyncio.run(steps(address, OpenAIChatModel, False))


async def steps(address, model_class, has_state):
    provider = OpenAIProvider(base_url=address, api_key="none")

    def agent(model="plain", **settings):
        return Agent(model_class(model, provider=provider), **settings)

    first = await agent(instructions="Be brief." if has_state else None).run("Hello")
    equal(first.output, "echo: Hello")

    def further():
        if has_state:
            return {"model_settings": {"openai_previous_response_id": first.response.provider_response_id}}
        return {"message_history": first.all_messages()}

    async with agent().run_stream("And again", **further()) as streamed:
        pieces = [piece async for piece in streamed.stream_text(delta=True)]
    equal("".join(pieces), "echo: And again")
    if has_state:
        equal((await agent().run("Another way", **further())).output, "echo: Another way")

    equal((await agent("toolbox").run("compute")).output, "It is 42.")
    settings = {"openai_previous_response_id": "auto"} if has_state else None
    equal((await agent(tools=[weather]).run("weather", model_settings=settings)).output, "The tool said: sunny")
    equal((await agent(output_type=NativeOutput(Report)).run("structured")).output, Report(**BERN))
    try:
        await agent("nobody").run("Hello")
    except ModelHTTPError as error:
        equal((error.status_code, error.body["code"]), (404, "model_not_found"))
    else:
        raise AssertionError("a model that does not exist")

    if has_state:
        remembered = await agent().run("Remember 17")
        further_turn = await agent().run("And now?", message_history=remembered.all_messages())
        equal(further_turn.output, "echo: And now?")


play([responses, chat])
