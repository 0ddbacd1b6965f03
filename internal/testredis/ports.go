package testredis

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// busOffset is where a Cluster node listens for the others: its port and this.
const busOffset = 10000

var taken struct {
	sync.Mutex
	ports map[int]bool
}

// freePort finds a loopback port that is free together with its Cluster bus
// port. It looks below the range that systems give to outgoing connections, so
// that nothing takes the port before the server does; another process that
// looks at the same time still may, which is why servers are tried more than once.
func freePort(t testing.TB) string {
	t.Helper()
	taken.Lock()
	defer taken.Unlock()
	if taken.ports == nil {
		taken.ports = map[int]bool{}
	}
	for range 1000 {
		port := 11000 + rand.IntN(11000)
		if taken.ports[port] || !bindable(t, port) || !bindable(t, port+busOffset) {
			continue
		}
		taken.ports[port] = true
		return strconv.Itoa(port)
	}
	t.Fatal("testredis: no free port on loopback")
	return ""
}

func bindable(t testing.TB, port int) bool {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}
