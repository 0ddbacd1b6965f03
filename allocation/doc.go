// Package allocation hands out proxies from pools that live in Redis.
//
// # Who is authoritative
//
// Redis is. A pool's members, counts, health, leases and bans are read and
// changed only inside scripts, one script a call, so that no two processes ever
// act on the same reading. A Pools holds configuration and nothing else. Time
// is Redis's, in microseconds. When Redis fails, so does the call; nothing is
// handed out from memory.
//
// Takes that a process asks for while others of the same pool are under way are
// sent together, each made in turn by the same script; see Take.
//
// # Counts and scores
//
// A count is the number of recorded allocations of an endpoint, failed ones
// too. It is not latency, not success, not work in flight. It survives removal
// and return. A call whose reply is lost and that the client sends again counts
// once: Redis remembers the last reply of each call that a process has under way.
//
// A score is count + handicap. least-used takes the lowest score among the
// eligible; of equals it takes one at random, or about the one that was taken
// least recently where a pool is asked many times a second. The handicap makes a new or returning endpoint
// start where the pool's Start says: level with the lowest (floor), at zero, or
// at a number. So an endpoint that comes back after a thousand rounds takes its
// share of the next picks, not all of them, and its count stays true.
//
// # Policies
//
//	least-used  the lowest score                   counts differ by one at most while nobody comes or goes
//	random      each draw on its own               P(the same again) = 1/N: a repeat is no fault
//	no-repeat   at random, but not the last one    over the whole pool, all processes; see Config.Alone
//	shuffled    each once a pass, in random order  last of a pass ≠ first of the next
//	least-busy  the fewest leases in flight        up to a cap; a lease not released ends by itself
//	sticky      the same one per key               while it is eligible; then the least used
//
// A pool keeps what every policy needs, so a policy can be changed while it
// runs; see Pools.Reload.
//
// # Costs
//
// In a pool of 100,000 most of a take's price is memory that no cache holds: a
// write at a random place of a sorted set costs as much as a quarter of an empty
// call. In a smaller one it is Lua's own work: texts, tables, numbers written out.
// Hence these habits. What a call's takes share is read and written once, and the first of an order are
// read without their scores where these are level (lua/choose.lua). A
// policy writes the order that it goes by and no other: the order by score lags
// behind the counts under random, no-repeat, shuffled and least-busy, never ahead of them,
// and whoever asks for the lowest mends it from the bottom up (lua/membership.lua, lua/by_score.lua).
// And the leases of one call are one entry (lua/lease.lua).
//
// # Health
//
//	                   failure: connect, unreachable, tls, timeout, reset, ban (no target named)
//	          ┌────────────────────────────────────────────────┐
//	          │                                                ▼
//	import ► active ◄── ok ── probation ── failure ──► quarantined(until, why)
//	                          ▲  ▲                             │
//	                          │  └── until has come, restore ──┘
//	import ► candidate ── a check that fits
//
//	any state ── proxy-auth ──► auth_failed ── restore, import with a new password ──► probation
//	any state ── Disable ────► disabled ── restore ──► probation
//	active, probation, quarantined ── a check that does not fit ──► candidate
//
// Active and probation are eligible. The end of a quarantine is seen by the
// next Take, inside its script; no process has to be awake for it.
//
// A quarantine lasts Base, and twice as long for each strike that no success
// has made up for, up to Max. Each ok takes one strike back. Failures that come
// in while an endpoint is out already belong to the same outage and count for
// nothing, and a late ok does not end the quarantine. An endpoint of a pool
// with Gateway needs three failures in a row.
//
//	outcome                      the endpoint                  the named target
//	ok                           a strike back                 a witness for it
//	connect                      quarantined                   –
//	unreachable, tls, timeout,   quarantined                   a witness against it
//	reset
//	ban                          barred from that target       a witness against it
//	target-5xx                   –                             a witness against it
//	proxy-auth                   auth_failed                   –
//	cancelled                    –                             –
//
// Whatever a target answered, a 404 too, is ok: the endpoint did its work.
//
// # Targets
//
// Bans are per target, and back off like quarantines. When more than
// BlameTargetAbove of the endpoints that asked a target within five minutes
// failed on it (half the pool must have asked, two endpoints at least, five are
// always enough), the fault is the target's: it is paused for the pool, and the
// quarantines and bans it caused are taken back. Take for a paused target is an
// *EmptyError that names it.
//
// # Candidates
//
// Under a Require what is imported is a candidate, and serves after Judge was
// told of a check that fits; Judge has the table. Without one, it serves at once.
// Checks are made elsewhere: Candidates says whom to check next, with credentials
// and without counting. A changed Require reaches the others with Fit.
//
// A check that fails for more than BlameTargetAbove of those that serve blames the
// judge, which stands among the targets as "(judge)". Dead candidates are no witnesses.
//
// # Exits
//
// An endpoint is what was configured; its exits are the addresses that the judge
// saw, the 16 latest. Policies rotate over endpoints; Exits tells which of them
// share an address, Endpoint.Rotates which have several.
//
// # Lists
//
// Import adds a list by hand; its endpoints stay until Remove. Sync follows a
// list: who is gone from it retires. A retired or removed endpoint keeps its count
// for its return; its health, verdict, exits and bans go, its leases end as they would.
//
// # Nothing eligible
//
// Take answers with an *EmptyError at once. It says when the next endpoint or
// target comes back, or that none will by itself. It never waits.
//
// # Secrets
//
// The URL in an Allocation holds the password. IDs, errors, Endpoint and State
// hold none; a user without a password may be an API key and is shown as a digest.
package allocation
