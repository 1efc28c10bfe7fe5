"""What schemathesis is told of the service, beside its description.

Events of a stream: the description has the form of what an event's line `data` holds, and schemathesis
takes the form of the event with all its lines.

A check in place of positive_data_acceptance, which knows statuses alone: a request that fits the
description is refused only for what no schema can say.
"""

import re

import schemathesis
from schemathesis import GenerationMode

# Whatever the field is. How many messages are taken is configured.
CODES = {"nul_character", "invalid_cursor", "too_many_messages"}
# What a field must be, given others, or by a grammar of its own.
FIELDS = re.compile(
    r"""
    metadata                # a parameter that is JSON
    | /model                # either this or `models`
    | /name                 # as in the path, or none
    | /script               # of the scripted driver only
    | /subagents | /provider_tools | /parameters[./]tool_choice  # by names that are there
    | /thread               # either this or a base session
    | /if_busy              # of a run on a thread only
    | /input/\d+/role       # the user's, of a message to a run at work
    | /input/\d+/section    # `summary` is for hooks
    | /input/\d+(/content(/\d+(/content/\d+)?)?)?  # which parts a role or a result may have
    | /budget/max_cost      # of models whose prices are known
    | /webhook(/url)?       # an address that may be sent to
    | /compiler             # its sections have the conversation's
    | if-none-match         # `*` alone, for which schemathesis does not read the pattern
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
    # To a schema 13.0 is an integer, and integers have no end.
    of_numbers = ("invalid type: floating point", "an integer of more than 64 bits")
    is_excused = problem["code"] in CODES or any(words in problem["detail"] for words in of_numbers)
    is_excused = is_excused or any(FIELDS.fullmatch(pointer) for pointer in pointers)
    assert is_excused, f"{problem['code']}: {problem['detail']}"
