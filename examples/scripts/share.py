#!/usr/bin/env python3
"""Runs a command that makes one request of your own, under a quota that the
feeds share. Standard library only; take charge() and refund() into your own.

FEEDWARDEN_URL=http://127.0.0.1:8080 FEEDWARDEN_TOKEN=… ./share.py youtube 1 curl -fsS https://…

It waits for its turn in the line, at most FEEDWARDEN_PATIENCE seconds (600); then
it leaves the line and exits 75. A command that fails gets its units back: its
request is taken not to have counted. Its exit code is handed on. An answer that
does not come within FEEDWARDEN_TIMEOUT seconds (60) is a failure.
"""
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

BASE = os.environ.get("FEEDWARDEN_URL", "http://127.0.0.1:8080").removesuffix("/")
TIMEOUT = float(os.environ.get("FEEDWARDEN_TIMEOUT", 60))


class Refused(Exception):
    """Not within our patience: try again in so many seconds."""


def call(quota, action, body):
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get("FEEDWARDEN_TOKEN"):
        headers["Authorization"] = "Bearer " + token
    url = f"{BASE}/v1/quotas/{urllib.parse.quote(quota, safe='')}/{action}"
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=TIMEOUT) as answer:
        return json.load(answer)


def charge(quota, cost, id, patience):
    """Returns when the units are ours. The same id again is never counted twice.
    Whoever gives up before that leaves the line by refund()."""
    while True:
        try:
            return call(quota, "charge", {"id": id, "cost": cost})
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503) or "Retry-After" not in error.headers:
                raise
            seconds = int(error.headers["Retry-After"])
        if seconds > patience:
            raise Refused(f"{quota}: refused for another {seconds} s")
        print(f"{quota}: {seconds} s until it is our turn", file=sys.stderr)
        patience -= seconds
        time.sleep(seconds)


def refund(quota, id):
    return call(quota, "refund", {"id": id})["restored"]


def main(quota, cost, *command):
    id = f"script-{uuid.uuid4()}"
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = 1
    try:
        charge(quota, int(cost), id, float(os.environ.get("FEEDWARDEN_PATIENCE", 600)))
        code = subprocess.run(command).returncode
    except KeyboardInterrupt:
        code = 130
    finally:  # nor does who was stopped in the line keep a place there
        if code != 0:
            try:
                refund(quota, id)
            except (OSError, http.client.HTTPException, ValueError):  # what was wrong first is what to say
                print(f"could not give {cost} units back under {id}", file=sys.stderr)
    return code


if __name__ == "__main__":
    if len(sys.argv) < 4:
        print("usage: share.py QUOTA COST COMMAND…", file=sys.stderr)
        sys.exit(2)
    try:
        sys.exit(main(*sys.argv[1:]))
    except Refused as refused:
        print(refused, file=sys.stderr)
        sys.exit(75)
    except urllib.error.HTTPError as error:
        sys.exit(f"{error.code}: {error.read().decode().strip()}")
    except (OSError, http.client.HTTPException, ValueError) as error:  # refused, no such host, cut off, no such command
        sys.exit(f"{getattr(error, 'filename', None) or BASE}: {getattr(error, 'reason', error)}")
