package scheduler

// One hash tag holds all keys, so a script may touch any of them in a Cluster.
const prefix = "fw:{schedules}:"

const (
	liveKey   = prefix + "live"   // sorted set: dispatchers by their last beat
	manualKey = prefix + "manual" // sorted set: open requests by when they were made
)

// stateKey is the hash of one schedule.
func stateKey(name string) string { return prefix + "s:" + name }

// requestKey is the hash of one trigger or backfill.
func requestKey(id string) string { return prefix + "m:" + id }
