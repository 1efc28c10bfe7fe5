"""The scenarios with `litellm`."""

import json

import litellm
from common import BERN, CITY, REPORT, SKY, WEATHER, equal, play, raises


def responses(address):
    def create(model="plain", **request):
        return litellm.responses(model=f"openai/{model}", api_base=address, api_key="none", **request)

    def text(response):
        return "".join(part.text for item in response.output if item.type == "message" for part in item.content)

    first = create(input="Hello", instructions="Be brief.")
    equal(text(first), "echo: Hello")
    events = create(input="And again", previous_response_id=first.id, stream=True)
    equal("".join(event.delta for event in events if event.type == "response.output_text.delta"), "echo: And again")
    equal(text(create(input="Another way", previous_response_id=first.id)), "echo: Another way")
    equal(text(create("toolbox", input="compute")), "It is 42.")

    tools = [{"type": "function", "name": "weather", "description": WEATHER, "parameters": CITY}]
    asked = create(input="weather", tools=tools)
    [call] = asked.output
    equal((call.name, json.loads(call.arguments)), ("weather", {"city": "Bern"}))
    output = {"type": "function_call_output", "call_id": call.call_id, "output": SKY}
    equal(text(create(input=[output], tools=tools, previous_response_id=asked.id)), "The tool said: sunny")

    report = {"type": "json_schema", "name": "report", "schema": REPORT, "strict": True}
    equal(json.loads(text(create(input="structured", text={"format": report}))), BERN)
    raises(litellm.NotFoundError, lambda: create("nobody", input="Hello"))

    history = [{"role": "user", "content": "Remember 17"}]
    history += [{"role": "assistant", "content": text(create(input=history))}]
    history += [{"role": "user", "content": "And now?"}]
    equal(text(create(input=history)), "echo: And now?")


def chat(address):
    def create(messages, model="plain", **request):
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return litellm.completion(
            model=f"openai/{model}", api_base=address, api_key="none", messages=messages, **request
        )

    first = create("Hello").choices[0].message
    equal(first.content, "echo: Hello")
    history = [{"role": "user", "content": "Hello"}, first.model_dump(), {"role": "user", "content": "And again"}]
    chunks = create(history, stream=True)
    equal("".join(chunk.choices[0].delta.content or "" for chunk in chunks), "echo: And again")
    equal(create("compute", "toolbox").choices[0].message.content, "It is 42.")

    function = {"name": "weather", "description": WEATHER, "parameters": CITY}
    tools = [{"type": "function", "function": function}]
    asked = create("weather", tools=tools).choices[0].message
    [call] = asked.tool_calls
    equal((call.function.name, json.loads(call.function.arguments)), ("weather", {"city": "Bern"}))
    history = [{"role": "user", "content": "weather"}, asked.model_dump()]
    history += [{"role": "tool", "tool_call_id": call.id, "content": SKY}]
    equal(create(history, tools=tools).choices[0].message.content, "The tool said: sunny")

    report = {"type": "json_schema", "json_schema": {"name": "report", "schema": REPORT, "strict": True}}
    equal(json.loads(create("structured", response_format=report).choices[0].message.content), BERN)
    raises(litellm.NotFoundError, lambda: create("Hello", "nobody"))


play([responses, chat])
