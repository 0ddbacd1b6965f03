package allocation

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Keys of one pool, all in one slot:
//
//	fw:{pool:NAME}:endpoints   HASH  u:ID url, c:ID count, h:ID handicap, s:ID health (JSON), t:ID turn, f:ID leases while it is not eligible,
//	                                 v:ID verdict (JSON), x:ID exits (JSON, at most 16), o:ID lists it came from, last, pass, lag
//	fw:{pool:NAME}:ready       ZSET  eligible endpoints by count + handicap, or less while lag says so; see membership.lua
//	fw:{pool:NAME}:deck        ZSET  the same by turn, for shuffled
//	fw:{pool:NAME}:busy        ZSET  the same by leases in flight, for least-busy
//	fw:{pool:NAME}:parked      ZSET  quarantined endpoints by the end of it, µs
//	fw:{pool:NAME}:held        ZSET  auth_failed (1), disabled (2) and candidate (3) endpoints
//	fw:{pool:NAME}:checks      ZSET  those to be checked by the last check, µs; 0 a candidate without one, 1 another without one
//	fw:{pool:NAME}:names       ZSET  all endpoints, score 0, for pages in the order of IDs
//	fw:{pool:NAME}:source:H    ZSET  endpoints of the followed list with digest H by the reading that saw them last; *, ! readings
//	fw:{pool:NAME}:call:P-N    STRING  the last reply of the Nth call under way at a time in process P; a minute
//	fw:{pool:NAME}:gone        ZSET  removed endpoints whose counts are kept, by the instant, µs; at most 100,000
//	fw:{pool:NAME}:ends        ZSET  loans, each the leases of one call, by their end, µs
//	fw:{pool:NAME}:loans       HASH  loan -> its endpoints, a line each
//	fw:{pool:NAME}:leases      ZSET  "token endpoint" by the lease's end, µs: those that a version without loans gave
//	fw:{pool:NAME}:sticky:H    STRING  the endpoint of the key with digest H; expires
//	fw:{pool:NAME}:target:H    ZSET  bans and the pause (*) of the target with digest H, by their ends, µs; expires
//	fw:{pool:NAME}:bad:H, good:H  ZSET  endpoints that failed and succeeded there; expire
//	fw:{pool:NAME}:targets     ZSET  names of targets with bans or a pause, by the last end of one, µs; at most 1,000, expires
//	fw:{pool:NAME}:strikes:H   HASH  bans and pauses in a row; expires
type keys struct{ prefix string }

func keysOf(pool string) keys { return keys{"fw:{pool:" + pool + "}:"} }

// members are the keys that membership.lua asks for, and more after them.
func (k keys) members(more ...string) []string {
	out := []string{k.prefix + "endpoints", k.prefix + "ready", k.prefix + "deck", k.prefix + "busy", k.prefix + "parked"}
	for _, name := range more {
		out = append(out, k.prefix+name)
	}
	return out
}

// leaseKeys are the keys that lease.lua asks for.
var leaseKeys = []string{"ends", "loans", "leases"}

func (k keys) target(name string) string { return k.prefix + "target:" + digest(name) }

// digest keeps keys short and free of what a caller's words may hold.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}

// targetName gives a target host its one spelling.
func targetName(target string) string {
	return strings.ToLower(strings.TrimSuffix(strings.TrimSpace(target), "."))
}
