// Package doctor examines the running world: the Redis server, the processes,
// the queues, quotas, pools, schedules and feeds, and says of each what is
// wrong and what to do.
//
// Reading is thin; what a reading means is decided by pure functions, one for
// each kind of thing (judge…). What a server forbids to ask is a finding of its
// own, "unknown", and no fault.
package doctor
