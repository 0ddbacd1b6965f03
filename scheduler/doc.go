// Package scheduler turns cron expressions into instants, and instants into
// jobs: each tick once, however many dispatchers run and whichever of them
// dies.
//
// # Expressions
//
// robfig/cron reads the five fields; the instants are worked out here. The
// fields name civil times: dates of the calendar and minutes of the day. A
// zone's clock decides when such a time comes.
//
//	hour or minute starts with *   it follows the clock: whenever the clock reads a named time
//	else, and the time is shown    when the clock first reads it
//	else, in a gap of hours        just after the gap
//	its whole date was left out    never
//
// Day of month and weekday must both hold where one of them starts with *,
// else either is enough. @every is anchored to the Unix epoch and the
// schedule's phase.
//
// # One tick
//
// Redis is the authority on time and on what is settled. For each schedule
// it holds last, the instant up to which all ticks have become jobs or were
// counted as skipped or missed.
//
//	               claim.lua                     Enqueuer                advance.lua
//	due ──────────────────────▶ claimed, 5 s ──────────────▶ job exists ──────────────▶ last = tick
//	 ▲   last is as expected,         │                          │       last is still
//	 │   no other claim               │ died: the claim ends     │ died  as it was
//	 └────────────────────────────────┴──────────────────────────┘
//
// A dispatcher that dies on the way loses nothing: the claim ends, another
// one does the same again, and the tick's ID makes the second enqueue find
// the first job. One that was stopped and comes back finds that half its
// claim's time is over, and claims anew before it does anything; then last
// has moved. So a tick becomes two jobs only if a process stops within the
// enqueue itself, for longer than the queue remembers the ID.
//
// No leader is needed. While several dispatchers live, each tick is left to
// one of them for half a second, to save work.
//
// # Late, missed, skipped
//
// A tick that a dispatcher was up for, but that a full queue, a job that has
// not ended or a Redis outage kept from running, is late. It stays due until
// it is older than CatchUp.Within, then it is missed. A tick for which no
// dispatcher was up is a misfire, and CatchUp.Policy decides. Which it was is
// known from touched, when some dispatcher last claimed a tick of the
// schedule: what came due between that and the start of the one that claims
// now, nobody attended (gap_from, gap_to). While other dispatchers live, a
// tick counts as missed only when it is five seconds late.
//
// A schedule or a revision (expression, zone, @every phase) seen for the
// first time has missed nothing. During a rolling change the old and the new
// revision both run, each settled by itself.
//
// # Keys
//
//	fw:{schedules}:s:NAME  hash, one a schedule, kept to its next tick and 35 days on:
//	    v                              schema, 1
//	    revision                       the one taken up last
//	    last:REVISION                  settled up to; of this revision and the one before
//	    touched, gap_from, gap_to      see above
//	    claim, claim_until             who works on the next tick; "-" while it rests
//	    ticked, ticked_at, lateness    the last job's tick
//	    hold                           why a due tick waits
//	    dispatched, skipped, missed, late, by_hand
//	    pause_from, pause_to, pause_by, pause_at, resume_by, resume_at
//	    manual, manual_id, manual_by, manual_at
//	fw:{schedules}:live    sorted set, dispatchers by their last beat; three seconds each
//	fw:{schedules}:manual  sorted set, open triggers and backfills; at most 100
//	fw:{schedules}:m:ID    hash, one a trigger or backfill; seven days at most
//
// Times are Unix milliseconds.
package scheduler
