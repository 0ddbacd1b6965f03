package redisconn

import "context"

const (
	logName    = "redis.log"
	needsGuard = false
)

// findServer finds none: a child on a unix socket is not to be had here.
func findServer() (string, error) { return "", errNoServer }

func startChild(context.Context, string, string, joinRecord, bool) (server, error) {
	return nil, errNoServer
}
