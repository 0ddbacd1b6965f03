// Package jobs is what a job is and how it runs: enqueue, the handler, the
// snooze, attempts, cancelling, and the repair of what a queue can lose.
//
// A job is one asynq task of type feed:fetch. asynq is authoritative for where
// a task is (pending, scheduled, retry, active); the job's record, a hash of
// ours, for what has happened to it: attempts, snoozes, requests sent, how it
// ended. A record that says "ended" wins: a delivery that comes later, for
// whatever reason, does nothing.
//
//	            ┌────────────── promised instant ──────────────┐
//	            ▼                                              │
//	pending ─▶ running ─ refused, pool empty, target closed ─▶ snoozed
//	  ▲         │  │
//	  │         │  ├─ stored ─────────────▶ done
//	scheduled   │  ├─ expires, cancel ────▶ expired, cancelled
//	            │  └─ attempts used up ───▶ failed
//	            ├─ real failure ─▶ retrying ─ backoff ─▶ running
//	            └─ worker stopped or died ─▶ pending
//
// A run asks in this order, and each may put it to sleep with nothing of the
// later ones taken: running limits, the host's robots.txt (where the source is a
// page), units, the host's turn, an endpoint. Trier goes the same way by hand.
//
// asynq's own budget is set out of the way (MaxRetry): it archives a task whose
// budget is spent before it asks whether the error was a failure. The budget
// is Feed.Attempts and is counted in the record, so a snooze burns nothing. A
// foreign task that asynq would archive on a refusal is replaced by a copy of
// ours before it ends; the old ID's record says where it went.
//
// A version that was stored is handed over to the feed's sinks: a delivery is a
// job as well, of type sink:deliver, with a queue, slots and a budget of tries of
// its own, so that no sink holds up or fails a feed. Package sink says more.
//
// A queue is bounded: an enqueuer first takes a place, in the script that counts,
// and the place counts until the task is there. A job that has an expiry and has
// sent nothing is woken at it, wherever it sleeps, and ends as expired.
//
// What can fail, and what follows:
//   - A worker dies: asynq's lease on its tasks ends within 30 s, and the
//     reconciler of any living worker puts them back at the head of their queue
//     within 10 s more. A request that went out stays charged; one that did not
//     keeps its charge for the next run.
//   - A worker is told to stop: what does not end in time is cancelled, and only
//     when its handler has ended does the task go back.
//   - Two runs of one job overlap (a lease was lost): every write to the record
//     carries the run's token, and the older run's is refused.
//   - Redis is away: the handler fails, asynq keeps the task, its lease ends.
package jobs
