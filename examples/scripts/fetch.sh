#!/bin/sh
# Fetches a feed now and prints its titles. Needs curl; jq makes it shorter.
#   FEEDWARDEN_URL=http://127.0.0.1:8080 FEEDWARDEN_TOKEN=… ./fetch.sh news
set -eu
base=${FEEDWARDEN_URL:-http://127.0.0.1:8080}
feed=${1:?usage: fetch.sh FEED}

call() { # METHOD PATH [BODY]
  set -- -sS --fail-with-body -X "$1" "$base$2" -H 'Content-Type: application/json' ${3:+--data "$3"}
  [ -z "${FEEDWARDEN_TOKEN:-}" ] || set -- "$@" -H "Authorization: Bearer $FEEDWARDEN_TOKEN"
  curl "$@"
}
field() { sed -n "s/.*\"$1\": *\"\\([^\"]*\\)\".*/\\1/p"; }

id=$(call POST /v1/jobs "{\"feed\":\"$feed\"}" | field id)
while :; do
  job=$(call GET "/v1/jobs/$id")
  case $(printf %s "$job" | field state) in
    done) break ;;
    failed | expired | cancelled) printf '%s\n' "$job" >&2; exit 1 ;;
    snoozed) echo "waits for its quota until $(printf %s "$job" | field next_at)" >&2; sleep 5 ;;
    *) sleep 1 ;;
  esac
done
call GET "/v1/feeds/$feed" | tr '{' '\n' | field title
