package quota

import "testing"

// A try for nothing costs a round trip. Where most are for nothing few are made, where
// most succeed none is left out; and it finds out again when that changes.
func TestTheShortestWayIsTriedWhereItSucceeds(t *testing.T) {
	t.Parallel()
	var h haste
	tries := func(charges, every int) (n int) { // every so manieth charge is one that it must leave to the other script; 0 is none
		for i := range charges {
			if h.tries() {
				n++
				h.tried(every == 0 || i%every != 0)
			}
		}
		return n
	}
	for _, c := range []struct {
		what                        string
		charges, every, least, most int
	}{
		{"a new one: all succeed", 1000, 0, 1000, 1000},
		{"one of twenty fails", 1000, 20, 700, 1000},
		{"a line stands", 10_000, 1, 100, 200},
		{"it is gone", 2000, 0, 1200, 2000},
		{"an entry leaves at every second charge", 10_000, 2, 100, 1000},
		{"all succeed again", 2000, 0, 1200, 2000},
	} {
		if n := tries(c.charges, c.every); n < c.least || n > c.most {
			t.Errorf("%s: %d tries for %d charges, want %d to %d", c.what, n, c.charges, c.least, c.most)
		}
	}
}
