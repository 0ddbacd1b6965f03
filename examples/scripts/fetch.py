#!/usr/bin/env python3
"""Fetches a feed now and prints its titles; exit 75: refused for
now. Standard library only. An answer that does not come within FEEDWARDEN_TIMEOUT
seconds (60) is a failure.

FEEDWARDEN_URL=http://127.0.0.1:8080 FEEDWARDEN_TOKEN=… ./fetch.py news
"""
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request

BASE = os.environ.get("FEEDWARDEN_URL", "http://127.0.0.1:8080").removesuffix("/")
TIMEOUT = float(os.environ.get("FEEDWARDEN_TIMEOUT", 60))


def call(method, path, body=None):
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get("FEEDWARDEN_TOKEN"):
        headers["Authorization"] = "Bearer " + token
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(BASE + path, data, headers, method=method), timeout=TIMEOUT) as answer:
        return json.load(answer)


def main(feed):
    job = call("POST", "/v1/jobs", {"feed": feed})
    while job["state"] not in ("done", "failed", "expired", "cancelled"):
        if job["state"] == "snoozed":
            print("waits for its quota until", job["next_at"], file=sys.stderr)
        time.sleep(0.5)
        job = call("GET", "/v1/jobs/" + job["id"])
    if job["state"] != "done":
        sys.exit(f"{job['state']}: {job['last_error']}")
    for item in call("GET", "/v1/feeds/" + feed)["items"]:
        print(item["title"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: fetch.py FEED")
    try:
        main(sys.argv[1])
    except urllib.error.HTTPError as error:
        print(f"{error.code}: {error.read().decode().strip()}", file=sys.stderr)
        sys.exit(75 if error.code in (429, 503) else 1)
    except (OSError, http.client.HTTPException, ValueError) as error:  # refused, no such host, cut off, no JSON
        sys.exit(f"{BASE}: {getattr(error, 'reason', error)}")
