package web

import "time"

// RedisIdentity is the Redis that this process works with.
type RedisIdentity struct {
	Mode    string    `json:"mode"` // single, sentinel, cluster, embedded redis-server, embedded miniredis
	Server  string    `json:"server"`
	Version string    `json:"version"`
	RunID   string    `json:"run_id"` // of a Cluster, of all its primaries
	Role    string    `json:"role"`
	Since   time.Time `json:"since"`   // when this process first met that run ID
	Changes int64     `json:"changes"` // of the run ID since this process began
	Refused string    `json:"refused"` // why nothing is written; "" while writes pass
}
