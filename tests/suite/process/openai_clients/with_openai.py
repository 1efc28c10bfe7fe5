"""The scenarios with the client `openai`."""

import json
import time

import openai
import pydantic
from common import BERN, CITY, SKY, WEATHER, equal, play, raises


class Report(pydantic.BaseModel):
    city: str
    degrees: int


def connect(address):
    return openai.OpenAI(base_url=address, api_key="none")


def responses(address):
    api = connect(address).responses
    first = api.create(model="plain", instructions="Be brief.", input="Hello")
    equal(first.output_text, "echo: Hello")
    equal(first.status, "completed")

    with api.stream(model="plain", input="And again", previous_response_id=first.id) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    equal("".join(deltas), "echo: And again")
    equal((final.output_text, final.previous_response_id), ("echo: And again", first.id))

    fork = api.create(model="plain", input="Another way", previous_response_id=first.id)
    equal(fork.output_text, "echo: Another way")

    computed = api.create(model="toolbox", input="compute")
    call, message = computed.output
    equal((call.type, call.name, json.loads(call.arguments)), ("mcp_call", "calculator", {"expression": "6*7"}))
    equal((call.output, call.status, message.content[0].text), ("42", "completed", "It is 42."))

    tools = [{"type": "function", "name": "weather", "description": WEATHER, "parameters": CITY, "strict": True}]
    asked = api.create(model="plain", input="weather", tools=tools)
    [call] = asked.output
    equal((call.type, call.name, json.loads(call.arguments)), ("function_call", "weather", {"city": "Bern"}))
    output = {"type": "function_call_output", "call_id": call.call_id, "output": SKY}
    answered = api.create(model="plain", input=[output], tools=tools, previous_response_id=asked.id)
    equal(answered.output_text, "The tool said: sunny")

    report = api.parse(model="plain", input="structured", text_format=Report)
    equal(report.output_parsed, Report(**BERN))

    error = raises(openai.NotFoundError, lambda: api.create(model="nobody", input="Hello"))
    equal((error.code, error.param, error.type), ("model_not_found", "model", "invalid_request_error"))

    history = [{"role": "user", "content": "Remember 17"}]
    remembered = api.create(model="plain", input=history)
    history += [item.to_dict() for item in remembered.output] + [{"role": "user", "content": "And now?"}]
    equal(api.create(model="plain", input=history).output_text, "echo: And now?")


def chat(address):
    api = connect(address).chat.completions
    history = [{"role": "user", "content": "Hello"}]
    first = api.create(model="plain", messages=history)
    equal((first.choices[0].message.content, first.choices[0].finish_reason), ("echo: Hello", "stop"))

    history += [first.choices[0].message.to_dict(), {"role": "user", "content": "And again"}]
    options = {"include_usage": True}
    chunks = list(api.create(model="plain", messages=history, stream=True, stream_options=options))
    deltas = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    equal("".join(deltas), "echo: And again")
    equal((chunks[-1].choices, chunks[-1].usage.total_tokens), ([], 15))

    computed = api.create(model="toolbox", messages=[{"role": "user", "content": "compute"}])
    equal(computed.choices[0].message.content, "It is 42.")
    equal((computed.usage.total_tokens, computed.choices[0].message.tool_calls), (30, None))

    function = {"name": "weather", "description": WEATHER, "parameters": CITY}
    tools = [{"type": "function", "function": function}]
    history = [{"role": "user", "content": "weather"}]
    asked = api.create(model="plain", messages=history, tools=tools)
    equal(asked.choices[0].finish_reason, "tool_calls")
    [call] = asked.choices[0].message.tool_calls
    equal((call.function.name, json.loads(call.function.arguments)), ("weather", {"city": "Bern"}))
    history += [asked.choices[0].message.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": SKY}]
    answered = api.create(model="plain", messages=history, tools=tools)
    equal(answered.choices[0].message.content, "The tool said: sunny")

    messages = [{"role": "user", "content": "structured"}]
    report = api.parse(model="plain", messages=messages, response_format=Report)
    equal(report.choices[0].message.parsed, Report(**BERN))

    error = raises(openai.NotFoundError, lambda: api.create(model="nobody", messages=messages))
    equal(error.code, "model_not_found")


def stored(address):
    """A response is read, listed, and deleted as it was made."""
    client = connect(address)
    made = client.responses.create(model="plain", input="Hello", instructions="Be brief.", metadata={"case": "7"})
    same(client.responses.retrieve(made.id), made)
    [item] = client.responses.input_items.list(made.id).data
    equal((item.role, item.content[0].text), ("user", "Hello"))
    streamed = client.responses.create(model="plain", input="And again", stream=True)
    last = [event.response for event in streamed if event.type == "response.completed"][0]
    same(client.responses.retrieve(last.id), last)
    client.responses.delete(made.id)
    raises(openai.NotFoundError, lambda: client.responses.retrieve(made.id))
    hidden = client.responses.create(model="plain", input="secret", store=False)
    equal(hidden.output_text, "echo: secret")
    raises(openai.NotFoundError, lambda: client.responses.retrieve(hidden.id))
    names = [model.id for model in client.models.list()]
    assert {"plain", "toolbox"} <= set(names), names
    equal(client.models.retrieve("plain").id, "plain")


def conversation(address):
    client = connect(address)
    talk = client.conversations.create(metadata={"topic": "greetings"})
    for text in ("Hello", "And again"):
        response = client.responses.create(model="plain", input=text, conversation=talk.id)
        equal((response.output_text, response.conversation.id), (f"echo: {text}", talk.id))
    items = client.conversations.items.list(talk.id, order="asc").data
    equal([item.content[0].text for item in items], ["Hello", "echo: Hello", "And again", "echo: And again"])
    equal(client.conversations.retrieve(talk.id).metadata, {"topic": "greetings"})
    client.conversations.delete(talk.id)
    raises(openai.NotFoundError, lambda: client.conversations.retrieve(talk.id))


def approvals(address):
    """A call is approved in one branch and denied in another."""
    api = connect(address).responses
    asked = api.create(model="careful", input="compute")
    [request] = asked.output
    equal((request.type, request.name), ("mcp_approval_request", "calculator"))
    for approve in (True, False):
        answer = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}
        answered = api.create(model="careful", input=[answer], previous_response_id=asked.id)
        equal(answered.output_text, "It is 42." if approve else "Nothing is computed.")


def errors(address):
    """Each error has a class and a code, and no request is repeated."""
    api = connect(address).responses
    unknown = "resp_" + "0" * 32
    search = [{"type": "web_search"}]
    weather = {"type": "function", "name": "weather", "parameters": CITY}
    asked = api.create(model="plain", input="weather", tools=[weather])
    previous = "previous_response_id"
    cases = [
        (openai.NotFoundError, "model_not_found", "model", {"model": "nobody"}),
        (openai.BadRequestError, "previous_response_not_found", previous, {previous: unknown}),
        (openai.BadRequestError, "unsupported_parameter", "tools[0].type", {"tools": search}),
        (openai.BadRequestError, "invalid_answers", "input", {previous: asked.id}),
        (openai.BadRequestError, "invalid_prompt", None, {"input": "fail"}),
    ]
    for kind, code, param, change in cases:
        request = {"model": "plain", "input": "Hello", **change}
        error = raises(kind, lambda: api.create(**request))
        equal((error.code, error.param), (code, param))
        assert error.request_id, error
    failed = error.body["response_id"]
    equal(api.retrieve(failed).status, "failed")
    with api.stream(model="plain", input="fail") as stream:
        last = list(stream)[-1]
    equal((last.type, last.response.status), ("response.failed", "failed"))
    raises(openai.NotFoundError, lambda: api.retrieve(unknown))
    for absent in (api.compact, api.input_tokens.count):
        error = raises(openai.NotFoundError, lambda: absent(model="plain", input="Hello"))
        equal(error.code, "route_not_found")


def begin(address):
    """Begins a response in the background, and prints where its stream was left."""
    stream = connect(address).responses.create(model="plain", input="wait", background=True, stream=True)
    for event in stream:
        if event.type == "response.created":
            response = event.response
        if event.type == "response.output_text.delta":
            break
    print(json.dumps({"id": response.id, "sequence": event.sequence_number}))


def resume(address, response_id, sequence):
    """Reads the rest of that stream, and the response."""
    api = connect(address).responses
    rest = list(api.retrieve(response_id, stream=True, starting_after=int(sequence)))
    equal([event.sequence_number for event in rest], list(range(int(sequence) + 1, int(sequence) + 1 + len(rest))))
    last = rest[-1]
    equal((last.type, last.response.output_text), ("response.completed", "almost done"))
    same(api.retrieve(response_id), last.response)
    equal(len([item for item in last.response.output if item.type == "message"]), 1)
    with api.stream(response_id=response_id) as stream:
        equal(stream.get_final_response().output_text, "almost done")


def cancel(address):
    api = connect(address).responses
    begun = api.create(model="plain", input="wait", background=True)
    assert begun.status in ("queued", "in_progress"), begun
    until(lambda: api.retrieve(begun.id).status == "in_progress")
    api.cancel(begun.id)
    until(lambda: api.retrieve(begun.id).status == "cancelled")
    equal(api.retrieve(begun.id).output, [])
    # To cancel again changes nothing.
    equal(api.cancel(begun.id).status, "cancelled")


def retry(address):
    """The response to the first request is lost, and the client sends it again under the same key."""
    client = connect(address)
    client._idempotency_header = "Idempotency-Key"
    equal(client.responses.create(model="plain", input="drop me").output_text, "echo: drop me")


def thread(address):
    """Chat Completions continues a thread that a header names."""
    api = connect(address).chat.completions
    history = []
    for text in ("Hello", "And again"):
        history.append({"role": "user", "content": text})
        named = {"X-Agent-Thread": "ada"}
        completion = api.create(model="toolbox", messages=history, extra_headers=named)
        equal(completion.choices[0].message.content, f"echo: {text}")
        history.append(completion.choices[0].message.to_dict())


def same(given, expected):
    """Fails unless both objects have the same fields."""
    equal(given.to_dict(), expected.to_dict())


def until(is_reached):
    """Waits for a state, for half a minute at most."""
    deadline = time.monotonic() + 30
    while not is_reached():
        assert time.monotonic() < deadline, "the state is never reached"
        time.sleep(0.02)


play([responses, chat, stored, conversation, approvals, errors, begin, resume, cancel, retry, thread])
