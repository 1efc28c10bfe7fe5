"""Checks messages with the official library of Standard Webhooks.

Reads a JSON document per line, with secret, headers and body, and answers each
with a line: "verified", or the name of the library's error and its words.
"""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

for line in sys.stdin:
    message = json.loads(line)
    try:
        verified = Webhook(message["secret"]).verify(message["body"], message["headers"])
    except WebhookVerificationError as error:
        print(f"WebhookVerificationError: {error}")
    else:
        print("verified" if verified == json.loads(message["body"]) else "another body")
