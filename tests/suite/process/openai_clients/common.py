"""The parts that the scripts of this folder share.

Each script plays the same scenario with a client of its own, so that the test expects the same of
all: the requests that reach the model, and the sessions that are stored.
"""

import sys

# A tool that the caller executes: its description, the schema of its arguments, and its result.
WEATHER = "Returns the weather of a city."
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
SKY = "sunny"
# The output of the structured step.
REPORT = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
BERN = {"city": "Bern", "degrees": 21}


def equal(given, expected):
    """Fails unless both are the same."""
    assert given == expected, f"{given!r} instead of {expected!r}"


def raises(kind, action):
    """Returns the error that an action must raise."""
    try:
        result = action()
    except kind as error:
        return error
    raise AssertionError(f"{result!r} instead of {kind.__name__}")


def play(scenarios):
    """Plays the scenario that the command line names, at the address that it gives."""
    name, address, *arguments = sys.argv[1:]
    [scenario] = [scenario for scenario in scenarios if scenario.__name__ == name]
    scenario(address, *arguments)
