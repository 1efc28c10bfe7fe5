"""What schemathesis is told of the service, beside its description.

Events of a stream: the description has the form of what an event's line `data` holds, and schemathesis
takes the form of the event with all its lines.

Requests that fit the description are changed where they would come no further: an idempotency key is sent once,
agents and sessions that are not there are named once, and an agent has one model.

A check in place of positive_data_acceptance, which knows statuses alone: a request that fits the
description is refused only for what no schema can say, by name and in words.
"""

import gc
import re

import schemathesis
from schemathesis import GenerationMode

# The collector would go through the description with all of its schemas again and again.
gc.freeze()
gc.set_threshold(50_000)

# What is named is not there: names and ids are random.
NOT_FOUND = {
    "agent_not_found",
    "delivery_not_found",
    "file_not_found",
    "run_not_found",
    "session_not_found",
    "thread_not_found",
}
# The routes for the clients of other protocols.
PAGES = ("/v1/ai-sdk/", "/v1/ag-ui/", "/v1/langgraph/")
OPENAI = ("/v1/responses", "/v1/conversations", "/v1/chat/", "/v1/models")
# The fields of bodies that name such things.
NAMES = ("agent", "base_session_id", "environment_from")
# Other refusals: the code, the field, and what its message begins with. Where a problem names no field, its
# detail is the message.
REFUSALS = [
    ("invalid_parameter", "from", "is more than 366 days"),
    ("invalid_parameter", "to", "is before `from`"),
    ("invalid_field", "/disconnect_grace_seconds", "only the mode `stream` has readers"),
    # Requests of a browser's pages, which schemathesis is not.
    ("origin_not_allowed", None, "only pages of the console do this"),
    # Texts that a pattern could not describe, or that schemathesis does not make as it says.
    ("nul_character", ".*", "NUL characters can't be stored"),
    ("invalid_cursor", "cursor", "not a cursor of this list"),
    ("invalid_parameter", "metadata", "not a JSON object"),
    ("invalid_parameter", "before", "it determines where the page ends"),
    ("invalid_parameter", "roots", "a list of roots takes no filter"),
    ("invalid_header", "if-none-match", "only visible ASCII characters, and at least one"),
    ("invalid_field", "/webhook/url", "it is no URL such as https://"),
    # To a schema 13.0 is an integer, and integers have no end.
    ("invalid_field", ".*", "invalid type: floating point"),
    ("invalid_field", ".*", "an integer of more than 64 bits would be rounded"),
    # Parts and keys of an import are open for what later versions have, but for what looks like a mistake.
    ("missing_field", r"/message_history_state/.*/content/.*", "missing field"),
    ("unknown_field", r"/message_history_state/.*/content/.*", "unknown field"),
    ("invalid_field", r"/message_history_state/.*/content/.*", "invalid type: "),
    ("invalid_field", r"/message_history_state/.*/content/.*/type", "unknown variant "),
    ("unknown_field", r"/(context|environment)_state/.*", "unknown field"),
    ("invalid_field", r"/(deferred_tools|approvals/\d+/tools)/\d+", "a pattern has 1 to 200 visible characters"),
    # What a field must be, given others.
    ("invalid_field", "/name", "not the name in the path"),
    ("invalid_field", "/script", "only the scripted driver plays a script"),
    ("invalid_field", "/script", "the scripted driver needs at least one step"),
    ("invalid_field", "/input", "no message is in the section `messages`"),
    ("invalid_field", "/thread", "the thread determines the base session"),
    ("invalid_field", "/thread_from", "only a run on a `thread` can start elsewhere"),
    ("invalid_field", "/publish", "a run that publishes nothing can't have "),
    ("thread_exists", None, "there is a thread named "),
    ("invalid_field", "/if_busy", "only a run on a `thread` can meet another one there"),
    ("invalid_field", "/compiler", "without the section `messages` the model would not read what it is asked"),
    (
        "invalid_field",
        r"/input/\d+(/content(/\d+(/content/\d+)?)?)?",
        "images and documents belong to user messages, reasoning, refusals and tool calls to assistant messages, and",
    ),
    # A message to a run at work is one, of the user.
    ("invalid_field", r"/input/0/role", "only a message of the user can steer a run"),
    ("too_many_messages", "/input", "2 messages, and at most 1 are allowed"),
    # What answers and rules about them must be, given others.
    ("missing_field", "/input", "missing field `input`"),
    ("invalid_field", r"/answers/\d+(/.*)?", ""),
    ("invalid_field", "/answers", "empty: answer each open call"),
    ("session_not_waiting", None, ""),
    ("run_not_waiting", None, ""),
    ("invalid_field", r"/client_tools(/.*)?", ""),
    ("invalid_field", r"/approvals(/.*)?", ""),
    ("invalid_field", r"/context_state/(waiting|remembered_approvals)", ""),
    # What the agent and the service have.
    ("invalid_field", "/tools", 'the agent "demo" has no tool'),
    ("invalid_field", "/mcp", '"'),
    ("invalid_field", "/mcp", "no MCP server is named "),
    ("invalid_field", "/parameters/tool_choice", "the tool_choice is "),
    ("invalid_field", "/parameters/tool_choice", "only the driver tool_calling takes a tool_choice"),
    ("invalid_field", "/provider_tools", "no provider is named "),
    ("invalid_field", "/provider_tools", "a tool of "),
    ("invalid_field", "/subagents", "two tools would be named "),
    ("invalid_field", "/subagents", "0 can't be given the tool "),
    ("unknown_hook", r"/hooks/\d+/name", "no hook is named "),
    ("unknown_model", None, "no provider is named "),
    ("unknown_tool", None, "no tool is named "),
    ("model_not_configured", None, 'the provider "openai" has no API key'),
    # What the path of a file is, what it leads to, and what the bytes of a file are.
    ("invalid_parameter", "path", "a "),
    ("invalid_path", "path", "a "),
    ("invalid_field", r"/changes/\d+(/.*)?", ""),
    ("unknown_blob", r"/changes/\d+/content/blob", "there is no blob "),
    ("hash_mismatch", None, "the body has the hash "),
    ("invalid_field", "/parameters/tool_choice", "unknown variant "),
    # What providers take.
    ("invalid_history", None, "the messages can't be used: "),
    ("invalid_response_format", None, 'response_format: the schema must have "type": "object"'),
]

# Keys and fields that were sent.
sent = set()


@schemathesis.hook
def before_load_schema(context, raw_schema):
    for operations in raw_schema["paths"].values():
        for operation in operations.values():
            content = operation["responses"].get("200", {}).get("content", {})
            if "text/event-stream" in content:
                lines = {"event": {"type": "string"}, "data": {"type": "string"}}
                content["text/event-stream"]["schema"] = {"type": "object", "required": [*lines], "properties": lines}


@schemathesis.hook
def before_call(context, case, kwargs):
    if not is_valid(case):
        return
    headers, body = case.headers or {}, case.body
    if "Idempotency-Key" in headers:
        if headers["Idempotency-Key"] in sent:
            headers["Idempotency-Key"] = f"key-{len(sent)}"
        sent.add(headers["Idempotency-Key"])
    if not isinstance(body, dict):
        return
    for name in NAMES:
        if name in sent:
            body.pop(name, None)
        elif name in body:
            sent.add(name)
    is_agent = case.operation.label == "PUT /v1/agents/{name}"
    if is_agent and bool(body.get("model")) == bool(body.get("models")):
        body.pop("models", None)
        body["model"] = "demo/demo"


@schemathesis.check
def refused_only_for_what_no_schema_says(ctx, response, case):
    if not is_valid(case) or not 400 <= response.status_code < 500:
        return
    if case.path.startswith(PAGES):
        # The description leaves the bodies of these routes to the protocols, whose pages show the text of an error.
        assert response.text
        return
    problem = response.json()
    if case.path.startswith(OPENAI):
        # The description leaves the bodies of these routes to OpenAI's.
        assert problem["error"].keys() >= {"message", "type", "param", "code"}
        return
    code = problem["code"]
    errors = problem.get("errors") or [{"pointer": None, "message": problem["detail"]}]
    is_excused = code in NOT_FOUND or all(
        any(is_refusal(code, error, refusal) for refusal in REFUSALS) for error in errors
    )
    assert is_excused, f"{response.status_code} {code}: {problem['detail']}"


def is_refusal(code, error, refusal):
    known_code, field, words = refusal
    pointer = error["pointer"]
    is_field = pointer is None if field is None else pointer is not None and re.fullmatch(field, pointer, re.DOTALL)
    return code == known_code and is_field and error["message"].startswith(words)


def is_valid(case):
    return case.meta is not None and case.meta.generation.mode == GenerationMode.POSITIVE
