#!/bin/sh
# Fetches a feed now and prints its titles; exit 75: refused for now. Needs curl, sed and awk.
# An answer that does not come within FEEDWARDEN_TIMEOUT seconds (60) is a failure.
#   FEEDWARDEN_URL=http://127.0.0.1:8080 FEEDWARDEN_TOKEN=… ./fetch.sh news
set -eu
base=${FEEDWARDEN_URL:-http://127.0.0.1:8080}
base=${base%/}
feed=${1:?usage: fetch.sh FEED}

call() { # METHOD PATH [BODY]; the answer's body, or the error's on standard error
  set -- -sS -m "${FEEDWARDEN_TIMEOUT:-60}" -w '\n%{http_code}' -X "$1" "$base$2" -H 'Content-Type: application/json' ${3:+--data "$3"}
  [ -z "${FEEDWARDEN_TOKEN:-}" ] || set -- "$@" -H "Authorization: Bearer $FEEDWARDEN_TOKEN"
  answer=$(curl "$@") || exit 1 # curl has said why
  status=${answer##*"
"}
  case $status in
    2??) printf '%s\n' "${answer%"$status"}" ;;
    *)
      printf '%s: %s\n' "$status" "$(printf %s "${answer%"$status"}")" >&2
      case $status in 429 | 503) exit 75 ;; *) exit 1 ;; esac ;;
  esac
}

# The texts that one key has at one depth of the braces, one a line. The JSON is
# cut at its quotes, since a text may hold escaped quotes, braces and commas.
texts() { # KEY DEPTH
  LC_ALL=C awk -v wanted="$1" -v at="$2" '
    BEGIN { RS = "\"" }
    inside {
      text = text $0
      match($0, /\\*$/)
      if (RLENGTH % 2) text = text "\"" # the quote was escaped
      else { inside = 0; ended = 1 }
      next
    }
    {
      gsub(/[ \t\r\n]/, "")
      if (ended && /^:/) key = text
      else if (ended && key == wanted && depth == at) print plain(text)
      if ($0 != ":") key = ""
      depth += gsub(/[[{]/, "&") - gsub(/[]}]/, "&")
      text = ""; ended = 0; inside = 1
    }
    function plain(s,   out, i, c) {
      while ((i = index(s, "\\")) > 0) {
        c = substr(s, i + 1, 1)
        out = out substr(s, 1, i - 1) (c == "u" ? "\\u" : index("bfnrt", c) ? " " : c)
        s = substr(s, i + 2)
      }
      return out s
    }'
}

job=$(call POST /v1/jobs "{\"feed\":\"$feed\"}")
id=$(printf %s "$job" | texts id 1)
while :; do
  case $(printf %s "$job" | texts state 1) in
    done) break ;;
    failed | expired | cancelled) printf '%s: %s\n' "$feed" "$(printf %s "$job" | texts last_error 1)" >&2; exit 1 ;;
    snoozed) echo "waits for its quota until $(printf %s "$job" | texts next_at 1)" >&2; sleep 5 ;;
    *) sleep 1 ;;
  esac
  job=$(call GET "/v1/jobs/$id")
done
items=$(call GET "/v1/feeds/$feed")
printf %s "$items" | texts title 3
