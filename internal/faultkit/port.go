package faultkit

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

var used = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// listen opens a port of 127.0.0.1 that this process has not had, below the range
// that systems give to whoever asks for any: once it is closed nobody else comes
// to answer there.
func listen(ctx context.Context) (net.Listener, error) {
	const lowest, count, tries = 22_000, 10_000, 100
	var lc net.ListenConfig
	for range tries {
		port := lowest + rand.IntN(count)
		used.Lock()
		had := used.ports[port]
		used.ports[port] = true
		used.Unlock()
		if had {
			continue
		}
		if l, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	return lc.Listen(ctx, "tcp", "127.0.0.1:0")
}
