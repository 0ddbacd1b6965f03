package jobs

// A record is one key, so its ID may hold anything. The keys beside a queue
// carry the queue's own hash tag, the one that asynq's keys have: scripts that
// move a task touch both.
func recordKey(id string) string { return "fw:{job:" + id + "}:record" }

const (
	endedKey    = "fw:{jobs}:ended"    // zset: "feed\x00id", score the instant of the end in ms; bounded
	countersKey = "fw:{jobs}:counters" // hash: totals since ever
	cancelTopic = "fw:{jobs}:cancel"   // channel: the ID of a running job to cancel
)

func wakeKey(queue string) string   { return "fw:{" + queue + "}:wake" }   // zset: snoozed job, promised instant in ms, with fractions
func wokenKey(queue string) string  { return "fw:{" + queue + "}:woken" }  // zset: those of them at the queue's head; bounded
func placesKey(queue string) string { return "fw:{" + queue + "}:places" } // zset: job about to be enqueued, end of its place in ms
func asideKey(queue string) string  { return "fw:{" + queue + "}:aside" }  // list, bounded: what asynq could not read or had lost

// The keys of asynq 0.26 that our scripts touch. See its internal/base.
func asynqPending(queue string) string    { return "asynq:{" + queue + "}:pending" }
func asynqActive(queue string) string     { return "asynq:{" + queue + "}:active" }
func asynqLeases(queue string) string     { return "asynq:{" + queue + "}:lease" }
func asynqScheduled(queue string) string  { return "asynq:{" + queue + "}:scheduled" }
func asynqRetry(queue string) string      { return "asynq:{" + queue + "}:retry" }
func asynqTaskPrefix(queue string) string { return "asynq:{" + queue + "}:t:" }
