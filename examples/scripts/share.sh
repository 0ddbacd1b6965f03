#!/bin/sh
# Runs a command that makes one request of your own, under a quota that the feeds
# share. Needs curl and sed.
#   FEEDWARDEN_URL=http://127.0.0.1:8080 FEEDWARDEN_TOKEN=… ./share.sh youtube 1 curl -fsS https://…
# It waits for its turn in the line, at most FEEDWARDEN_PATIENCE seconds (600); then it
# leaves the line and exits 75. A command that fails gets its units back: its request is
# taken not to have counted. Its exit code is handed on. An answer that does not come
# within FEEDWARDEN_TIMEOUT seconds (60) is a failure.
set -eu
base=${FEEDWARDEN_URL:-http://127.0.0.1:8080}
base=${base%/}
patience=${FEEDWARDEN_PATIENCE:-600}
[ $# -ge 3 ] || { echo "usage: share.sh QUOTA COST COMMAND…" >&2; exit 2; }
quota=$1 cost=$2
shift 2
# One ID, one request: asked again with it, a charge is never counted twice.
id="$(uname -n)-$$-$(date +%s)"

call() { # ACTION BODY; the answer's body, then its status on a line of its own
  set -- -sS -m "${FEEDWARDEN_TIMEOUT:-60}" -w '\n%{http_code}' -H 'Content-Type: application/json' --data "$2" "$base/v1/quotas/$quota/$1"
  [ -z "${FEEDWARDEN_TOKEN:-}" ] || set -- "$@" -H "Authorization: Bearer $FEEDWARDEN_TOKEN"
  curl "$@"
}
refund() { call refund "{\"id\":\"$id\"}" >/dev/null || echo "could not give $cost units back under $id" >&2; }
sleeper=
trap '[ -z "$sleeper" ] || kill "$sleeper" 2>/dev/null || :; refund; exit 130' INT TERM

while :; do
  answer=$(call charge "{\"id\":\"$id\",\"cost\":$cost}") || { refund; exit 1; } # curl has said why; it may have been granted
  case $answer in *'"granted":true'*) break ;; esac
  ms=$(printf %s "$answer" | sed -n 's/.*"retry_after_ms":\([0-9][0-9]*\).*/\1/p')
  if [ -z "$ms" ]; then
    printf '%s\n' "$answer" >&2
    exit 1
  fi
  seconds=$((ms / 1000 + 1))
  if [ "$seconds" -gt "$patience" ]; then
    refund # out of the line
    echo "$quota: refused for another $seconds s" >&2
    exit 75
  fi
  echo "$quota: $seconds s until it is our turn" >&2
  patience=$((patience - seconds))
  sleep "$seconds" &
  sleeper=$!
  wait "$sleeper" # a signal does not have to wait for it
done
"$@" && exit 0
code=$?
refund
exit $code
