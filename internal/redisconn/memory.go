package redisconn

import (
	"crypto/rand"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// memory is miniredis on a loopback port with a password that only the join
// file tells. What it holds ends with it.
type memory struct {
	mini *miniredis.Miniredis
	rec  joinRecord
	quit chan struct{}
	done chan struct{}
}

func startMemory() (server, error) {
	m := &memory{mini: miniredis.NewMiniRedis(), quit: make(chan struct{}), done: make(chan struct{})}
	password := rand.Text()
	m.mini.RequireAuth(password)
	if err := m.mini.StartAddr("127.0.0.1:0"); err != nil {
		return nil, err
	}
	m.rec = newJoinRecord(miniredisServer, "tcp", m.mini.Addr())
	m.rec.Password = password
	go m.drive()
	return m, nil
}

const (
	clockStep  = 50 * time.Millisecond
	clockShare = 20 // the clock's hand takes at most one part in so many of the time
)

// drive moves miniredis's clock: by itself it never lets a key expire. Each
// move visits every key under the server's lock, so it is not done at each
// command, and less often when there are many keys. Steps follow the wall
// clock, as Redis's own expiry does.
func (m *memory) drive() {
	defer close(m.done)
	defer m.mini.Close()
	last, step := time.Now().Round(0), clockStep
	for {
		select {
		case <-m.quit:
			return
		case <-time.After(step):
		}
		began := time.Now()
		if now := began.Round(0); now.After(last) {
			m.mini.FastForward(now.Sub(last))
			last = now
		}
		step = max(clockStep, clockShare*time.Since(began))
	}
}

func (m *memory) record() joinRecord     { return m.rec }
func (m *memory) ended() <-chan struct{} { return m.done }
func (m *memory) why() string            { return "" }

func (m *memory) stop() {
	close(m.quit)
	<-m.done
}
