package allocation

import (
	"strconv"
	"sync"
)

// A call is lent the name of a Redis key that remembers its reply, and its
// number under that name: see lua/again.lua. When a reply is lost and the client
// sends the same call again, Redis answers it and does nothing twice.
type call struct {
	name   string
	number int64
}

// calls lends names to one call at a time each, so there are as many as calls
// were ever under way together.
type calls struct {
	process string

	mu   sync.Mutex
	free []*call
	made int
}

func newCalls() *calls { return &calls{process: token()} }

func (c *calls) lend() *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		one := c.free[n-1]
		c.free = c.free[:n-1]
		one.number++
		return one
	}
	c.made++
	return &call{name: "call:" + c.process + "-" + strconv.Itoa(c.made), number: 1}
}

func (c *calls) back(one *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, one)
}
