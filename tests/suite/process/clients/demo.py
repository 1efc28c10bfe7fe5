"""Runs the demo with a client that openapi-python-client has made of the description.

Takes the address of the service; the package agent_runtime_client is on the path.
Prints the answer of the agent when everything was as its types say.
"""

import json
import sys
import time

from agent_runtime_client import Client, models
from agent_runtime_client.api.runs import create_run, follow_run, get_run
from agent_runtime_client.api.sessions import get_session, list_messages
from agent_runtime_client.types import UNSET

QUESTION = "What is 17 * 23?"
# Which class an event's line `data` is read by.
EVENTS = {
    "run.started": models.RunStartedEvent,
    "message.delta": models.MessageDeltaEvent,
    "tool_call.completed": models.ToolCallCompletedEvent,
    "session.committed": models.SessionCommittedEvent,
    "run.completed": models.RunCompletedEvent,
}


def follow(client, run_id):
    """Yields the events of a run as they come, but those of kinds that are not listed above."""
    request = follow_run._get_kwargs(run_id)
    with client.get_httpx_client().stream(**request, timeout=60) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            field, _, value = line.partition(": ")
            if field == "data":
                event = json.loads(value)
                if event["type"] in EVENTS:
                    yield EVENTS[event["type"]].from_dict(event)


def main(address):
    client = Client(base_url=address)

    request = models.CreateRun(input_=QUESTION, agent="demo", mode=models.RunMode.ASYNC)
    accepted = create_run.sync_detailed(client=client, body=request)
    assert accepted.status_code == 202, accepted
    run = accepted.parsed
    assert isinstance(run, models.Run), run

    seen = {}
    for event in follow(client, run.run_id):
        assert event.run_id == run.run_id, event
        seen.setdefault(event.type_.value, []).append(event)
    assert list(EVENTS) == sorted(seen, key=list(EVENTS).index), seen
    [call] = seen["tool_call.completed"]
    assert call.data.content[0].text == "391", call
    spoken = "".join(event.data.text for event in seen["message.delta"])

    while run.status in (models.RunStatus.QUEUED, models.RunStatus.RUNNING):
        time.sleep(0.01)
        run = get_run.sync(run.run_id, client=client, wait="10s")
    assert run.status == models.RunStatus.COMPLETED, run
    assert run.output_text == spoken == seen["run.completed"][0].data.output_text, run

    session = get_session.sync(run.session_id, client=client)
    assert isinstance(session, models.Session), session
    assert session.run_id == run.run_id and session.root_hash == seen["session.committed"][0].data.root_hash
    history = session.message_history_state.messages
    assert [message.role.value for message in history] == ["user", "assistant", "tool", "assistant"], history
    assert history[0].content[0].text == QUESTION

    page = list_messages.sync(run.session_id, client=client, limit=2)
    assert page.data == history[:2] and page.total == 4 and page.next_cursor is not UNSET, page

    refused = create_run.sync(client=client, body=models.CreateRun(input_=QUESTION, agent="nobody"))
    assert refused.code.value == "agent_not_found" and refused.status == 404, refused

    print(run.output_text)


main(sys.argv[1])
