#!/usr/bin/env python3
"""Lets the agent `coder` work on a repository, and asks you before it runs commands.

The agent clones the repository, mends it and commits. Then two forks of that session each change
something, their files are merged, and the agent commits the result.
"""

import argparse
import json
import pathlib
import sys
import urllib.error
import urllib.request
import uuid

DATA = pathlib.Path(__file__).resolve().parent / "data"


class Service:
    """A client of the service. Problems end the program."""

    def __init__(self, address):
        self.address = address

    def call(self, method, path, body=None):
        """Sends a request and returns the response."""
        data = None if body is None else json.dumps(body).encode()
        # With the key, a request whose response was lost can be sent again.
        headers = {"content-type": "application/json", "idempotency-key": str(uuid.uuid4())}
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            problem = json.load(error)
            sys.exit(f"{problem['title']}: {problem['detail']}\n{json.dumps(problem.get('conflicts', []))}")

    def run(self, task, base=None):
        """Runs the agent on a task, and returns the run. You answer its open calls."""
        print(f"\n=== {task}")
        body = {"agent": "coder", "input": task, "base_session_id": base}
        run = self.call("POST", "/v1/runs", body)
        while run["status"] == "waiting":
            answers = [decide(call) for call in run["required_action"]["calls"]]
            run = self.call("POST", f"/v1/runs/{run['run_id']}/answers", {"answers": answers})
        if run["status"] != "completed":
            sys.exit(f"the run has ended as {run['status']}: {run['error']}")
        print(run["output_text"])
        return run


def decide(call):
    """Asks you about a call, and returns your answer to it."""
    print(f"The agent wants to run: {call['arguments'].get('command', call['arguments'])}")
    answer = {"call_id": call["call_id"], "arguments_hash": call["arguments_hash"]}
    reason = input("Press Enter to approve, or type why not: ").strip()
    print()
    if reason:
        return answer | {"decision": "deny", "reason": reason}
    return answer | {"decision": "approve"}


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--address", default="http://127.0.0.1:8080", help="of the service")
    arguments.add_argument("--repository", default=DATA / "shop.git", help="what to clone")
    arguments = arguments.parse_args()
    service = Service(arguments.address)

    clone = f"git clone --quiet {arguments.repository} ."
    first = service.run(f"Clone the repository with the command: {clone}\nIts tests fail. Mend it, and commit.")
    base = first["session_id"]

    # Both begin from the same session, and know nothing of each other.
    left = service.run("Separate thousands in shown prices, as in 1,234.50 EUR. Don't commit.", base)["session_id"]
    right = service.run("Refuse negative tax rates with a ValueError, and test it. Don't commit.", base)["session_id"]

    print("\n=== How the forks differ")
    for change in service.call("GET", f"/v1/sessions/{left}/diff/{right}")["files"]:
        print(change.get("diff", change["path"]))

    merged = service.call("POST", f"/v1/sessions/{left}/merge", {"with": right})["session_id"]
    last = service.run("The files have changes of two people. Run the tests, and commit.", merged)
    print(f"\nThe files: {arguments.address}/v1/sessions/{last['session_id']}/archive?format=zip")


if __name__ == "__main__":
    main()
