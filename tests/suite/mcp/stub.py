"""An MCP server that does what its one tool is asked to do, and speaks 2025-11-25."""

import json
import os
import subprocess
import sys
import time


LOST_IDS = {"no id": None, "empty id": "", "negative id": -1, "new id": 4711}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def misbehave(what):
    if what == "exit":
        os._exit(3)
    if what == "hang":
        time.sleep(600)
    if what == "greeting":
        print("Starting up!\n\n[1/2] warm", flush=True)
        send({"method": "notifications/unknown"})
    if what == "log":
        sys.stderr.write("the token is " + os.environ["TOKEN"] + "\n" + "y" * 2000 + "\nlast\n")
        sys.stderr.flush()
    if what in LOST_IDS:
        send({"id": LOST_IDS[what], "error": {"code": -32603, "message": "lost the thread"}})
    if what == "garbage":
        send({"text": "no message"})
    while what == "endless line":
        sys.stdout.write("x" * 65536)
    while what == "flood":
        send({"method": "notifications/message", "params": {"level": "info", "data": "x" * 1000}})
    while what == "noise":
        sys.stderr.write("x" * 1000 + "\n")
    if what == "memory":
        hog = [os.urandom(1 << 20) * 64 for _ in range(64)]
        time.sleep(len(hog))


def do(what, code):
    if what == "code":
        try:
            found = {}
            exec(code, found)
            return str(found.get("result"))
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    if what == "child":
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    misbehave(what)
    return "well behaved"


for line in sys.stdin:
    request = json.loads(line)
    number, method = request.get("id"), request.get("method")
    if method == "initialize":
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "stub", "version": "1"},
        }
    elif method == "tools/list":
        result = {"tools": [{"name": "do", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        arguments = request["params"]["arguments"]
        text = do(arguments.get("what", "code"), arguments.get("code", ""))
        result = {"content": [{"type": "text", "text": text}]}
        if arguments.get("what") == "nan":
            result["structuredContent"] = {"x": float("nan")}
        if arguments.get("what") in ("batch", "batch of one"):
            note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
            response = {"jsonrpc": "2.0", "id": number, "result": result}
            batch = [response] if arguments["what"] == "batch of one" else [note, response, {"text": "no message"}]
            print(json.dumps(batch), flush=True)
            continue
    else:
        if number is not None:
            send({"id": number, "error": {"code": -32601, "message": "Method not found"}})
        continue
    send({"id": number, "result": result})
