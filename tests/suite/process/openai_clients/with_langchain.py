"""The scenarios with `langchain-openai`."""

import openai
import pydantic
from common import BERN, CITY, SKY, WEATHER, equal, play, raises
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

WEATHER_TOOL = {"type": "function", "function": {"name": "weather", "description": WEATHER, "parameters": CITY}}


class Report(pydantic.BaseModel):
    """A report."""

    city: str
    degrees: int


def responses(address):
    def model(name="plain", **settings):
        return ChatOpenAI(model=name, base_url=address, api_key="none", use_responses_api=True, **settings)

    first = model().invoke("Hello", instructions="Be brief.")
    equal(first.text, "echo: Hello")
    base = first.response_metadata["id"]
    pieces = [chunk.text for chunk in model().stream("And again", previous_response_id=base)]
    equal("".join(pieces), "echo: And again")
    equal(model().invoke("Another way", previous_response_id=base).text, "echo: Another way")
    equal(model("toolbox").invoke("compute").text, "It is 42.")
    # With this setting it sends only the messages after the last response.
    ask_weather(model(use_previous_response_id=True))
    structured(model(), nobody=model("nobody"))

    history = [HumanMessage("Remember 17")]
    history += [model().invoke(history), HumanMessage("And now?")]
    equal(model().invoke(history).text, "echo: And now?")


def chat(address):
    def model(name="plain"):
        return ChatOpenAI(model=name, base_url=address, api_key="none")

    history = [HumanMessage("Hello")]
    first = model().invoke(history)
    equal(first.text, "echo: Hello")
    history += [first, HumanMessage("And again")]
    equal("".join(chunk.text for chunk in model().stream(history)), "echo: And again")
    equal(model("toolbox").invoke("compute").text, "It is 42.")
    ask_weather(model())
    structured(model(), nobody=model("nobody"))


def ask_weather(model):
    model = model.bind_tools([WEATHER_TOOL])
    history = [HumanMessage("weather")]
    asked = model.invoke(history)
    assert isinstance(asked, AIMessage), asked
    [call] = asked.tool_calls
    equal((call["name"], call["args"]), ("weather", {"city": "Bern"}))
    history += [asked, ToolMessage(SKY, tool_call_id=call["id"])]
    equal(model.invoke(history).text, "The tool said: sunny")


def structured(model, nobody):
    reporter = model.with_structured_output(Report, method="json_schema")
    equal(reporter.invoke("structured"), Report(**BERN))
    equal(raises(openai.NotFoundError, lambda: nobody.invoke("Hello")).code, "model_not_found")


play([responses, chat])
