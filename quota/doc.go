// Package quota is a weighted, exact sliding-window limiter on Redis, with a
// line for those it refuses, and limits on how many work at a time.
//
// # The law
//
// In no window of length W, wherever it starts, do grants add up to more than
// the limit. An entry at t counts while now < t+W. Redis is authoritative, and
// so is its clock, in microseconds: processes whose clocks differ agree.
// A quota has one or more windows, and a charge takes its cost from all of them
// or from none. A calendar window counts from midnight to midnight in a zone; a
// day may have 23 or 25 hours.
//
// # A charge
//
//	         room, and nobody of its class waits
//	  ask ────────────────────────────────────────► granted ──► Refund
//	   │                                               ▲
//	   │ else                                          │ room for it and
//	   ▼                                               │ all before it
//	refused: a place in the line, a promised instant ──┘
//	   │
//	   └─ Leave, or not back within the grace after the promise: place lost
//
// A charge has an ID of the caller's. Asked twice, it is charged once: the
// second answer says granted again. IDs are remembered for the longest window
// and for an hour at least. A refunded ID can be charged again.
//
// # The line
//
// A waiter counts as an entry of the log at its promised instant, so the line
// goes on where the log ends, and the next promise is the instant at which
// enough of both has left every window. Promises rise by a microsecond at least.
// A waiter asks again under its own ID. It is granted as soon as there is room
// for it and for everyone before it, so the first in line gets what is freed
// early. A newcomer is granted only while nobody of its class waits. Each
// answer carries the promise as it is then: it moves earlier when somebody
// leaves, later when somebody before it came late. A new promise counts on those
// before it, as they were given: where these have moved since (a block, a lowered
// limit, Interactive before Scheduled), it moves with them. But who fits into one limit
// with all those before it is told when the log has room for them, though they were
// promised later, before units came free early, and sleep. A waiter that does not come
// back keeps its place for the grace (30 s) after its promise; those behind may
// have to wait for that long, and no longer.
//
// A Limiter wakes nobody. Where units come free early (a refund, a block lifted, a
// limit raised), those that sleep until their promise do not know: State names the
// first of each line, for a caller that can wake them.
//
// Interactive charges go before Scheduled ones, and the last Reserve units of
// each window larger than it are theirs alone: a Scheduled charge is granted only if that many
// remain. So a promise holds against every newcomer of its own class; to
// Scheduled it can move when Interactive charges come in between.
//
// # Running limits
//
// Leases limit how many work at a time under a name: at most so many hold a lease,
// over all processes, and one whose holder died ends by Redis's clock.
//
//	         room for it and all before it
//	  Acquire ─────────────────────────────► held ──► Release, or its time is over
//	   │                                      ▲  │
//	   │ else                                 │  │ another limit of the same call refuses:
//	   ▼                                      │  ▼ given back, the place kept
//	refused: a place in the line ─────────────┘
//	   │        its turn comes: Release names it
//	   └─ Leave, or not back within the grace after its turn: place lost
//
// A call takes leases of several limits or of none. Limits live where their keys
// live, maybe on several nodes, so each is asked by itself, in one round trip, and
// a second one gives back what was taken when one has refused. A holder waits in
// one line at a time: so two that want the same two limits cannot hold each other up.
//
// # Cost
//
// One log entry a charge, whatever it costs. Entries carry running totals, so
// what a window counts is a difference, and Retry-After is found by halving: O(log n)
// in the log and in the line. What a grant needs to know is one string, with the
// newest entries in it: read once, written once. ChargeAll answers many requests in
// one round trip, and those of one quota in one run of the script. One alone tries a
// short script first, which knows half of the keys and grants where nobody waits and
// no entry left a window; where that has often had to leave it to the long one, it is
// tried less often.
//
// # What is seen
//
// Counters go along in what a charge writes anyhow. State tells them: grants, units,
// refusals, refunds, blocks, how often a granted charge had been refused, how long
// after their promises waiters came. History tells the past day by quarters of an
// hour: the counters are copied once a quarter, when something is first counted in
// it, and a quarter's own count is the difference to the next copy.
//
// A charge may carry a label: for whom it is. Shares tells the past day label by label.
// Units are counted under it as they are granted, and taken from it by a refund, in the
// quarters in which the series counts them: so the labels, and what had none, add up
// to the series. A quarter knows 1,000 labels; what goes to others counts as having
// none. A charge without a label costs nothing for it; one with a label two writes, and a
// line that is kept as long as its ID.
//
// # When things fail
//
// A lost reply is safe: ask again with the same ID (go-redis does). An error is
// never a grant. A flushed script cache is refilled, in a pipeline too. If the
// clock steps back (a failover to a replica that is behind), nothing expires
// early: stamps still rise. If Redis loses its data, the quota starts empty; where
// it dropped a single key, what that spoke of does: the log without the state, the
// line without one of its keys.
//
// # Keys
//
// All keys of a quota share one hash tag, and all have a TTL. What is written has it
// again, to within a second; every eighth grant gives it to both logs, to meta and to series, written or not.
// fw:{quota:NAME}:state (totals, the newest entries), :meta (block, counters),
// :series (the counters as quarters of an hour began, and their labels), :labels (those of
// the newest quarter), :log:0 and :log:1 (two
// generations of entries, charge IDs, refunds), :wait, :due, :line:scheduled,
// :line:interactive, :sums:scheduled, :sums:interactive (the
// line). Those of a running limit are fw:{running:NAME}:meta (block, the limit as
// last asked with), :held (leases), :line, :due, :past (who waits or has been).
// Each script's head says the rest.
package quota
