package feed

import (
	"sync"
	"sync/atomic"
)

// Copy is one feed's newest version as this process holds it.
type Copy struct {
	Head Head
	Meta Meta
	Raw  []byte
	Body []byte // what Encode made

	asked atomic.Bool
	got   atomic.Bool
	once  sync.Once
	made  any // see Derive
}

// Page is one page of the raw answer, 1 the first; nil where there is none.
func (c *Copy) Page(n int) []byte { return Version{Meta: c.Meta, Raw: c.Raw}.Page(n) }

// Derive gives what make made of this copy, which is made once.
func (c *Copy) Derive(make func(*Copy) any) any {
	c.once.Do(func() { c.made = make(c) })
	return c.made
}

// Ask is true for one reader of a copy, however many come: the one who is to
// ask for a refresh, and who says with Asked whether there is one.
func (c *Copy) Ask() bool { return !c.asked.Load() && c.asked.CompareAndSwap(false, true) }

// Asked says that a refresh is under way.
func (c *Copy) Asked() { c.got.Store(true) }

// Updating says that a reader of this copy has asked for a refresh, and got it.
func (c *Copy) Updating() bool { return c.got.Load() }

func (c *Copy) weight() int64 { return int64(len(c.Raw)+len(c.Body)) + 1024 }

// keep puts a copy into its place, and evicts what was used longest ago.
func (c *Copies) keep(e *entry, h *held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h != nil && h.weight() > c.cfg.Bytes/4 {
		h = nil
	}
	c.put(e, h)
	for c.bytes > c.cfg.Bytes {
		var oldest *entry
		c.entries.Range(func(_, v any) bool {
			o := v.(*entry) //nolint:forcetypeassert // nothing else is stored
			if o != e && o.now.Load() != nil && (oldest == nil || o.used.Load() < oldest.used.Load()) {
				oldest = o
			}
			return true
		})
		if oldest == nil {
			return
		}
		c.put(oldest, nil)
	}
}

func (c *Copies) put(e *entry, h *held) {
	if h != nil {
		c.bytes += h.weight()
	}
	if old := e.now.Swap(h); old != nil {
		c.bytes -= old.weight()
	}
}
