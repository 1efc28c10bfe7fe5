"""What schemathesis is told of the service, beside its description.

Events of a stream: the description has the form of what an event's line `data` holds, and schemathesis
takes the form of the event with all its lines.

A check in place of positive_data_acceptance, which knows statuses alone: a request that fits the
description is refused only for what no schema can say.
"""

import re

import schemathesis
from schemathesis import GenerationMode

# Whatever the field is.
CODES = {"nul_character", "invalid_cursor"}
# What a field must be, given others, or by a grammar of its own.
FIELDS = re.compile(
    r"""
    metadata                # a parameter that is JSON
    | /model                # either this or `models`
    | /script               # of the scripted driver only
    | /thread               # either this or a base session
    | /if_busy              # of a run on a thread only
    | /input/\d+/role       # the user's, of a message to a run at work
    | /input/\d+/section    # `summary` is for hooks
    | /input/\d+/content/\d+(/content/\d+)?   # which parts a role or a result may have
    """,
    re.VERBOSE,
)


@schemathesis.hook
def before_load_schema(context, raw_schema):
    for operations in raw_schema["paths"].values():
        for operation in operations.values():
            content = operation["responses"].get("200", {}).get("content", {})
            if "text/event-stream" in content:
                lines = {"event": {"type": "string"}, "data": {"type": "string"}}
                content["text/event-stream"]["schema"] = {"type": "object", "required": [*lines], "properties": lines}


@schemathesis.check
def refused_only_for_what_no_schema_says(ctx, response, case):
    is_valid = case.meta is not None and case.meta.generation.mode == GenerationMode.POSITIVE
    if not is_valid or response.status_code != 400:
        return
    problem = response.json()
    pointers = [error["pointer"] for error in problem.get("errors", [])]
    is_excused = problem["code"] in CODES or any(FIELDS.fullmatch(pointer) for pointer in pointers)
    assert is_excused, f"{problem['code']}: {problem['detail']}"
