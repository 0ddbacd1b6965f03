package quota_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"feedwarden/quota"
)

// Everybody comes back at its promise, no sooner and no later: then each promise
// is kept, whoever asks, leaves or is refunded meanwhile.
func TestPromisesAreKept(t *testing.T) {
	onBoth(t, func(rt *rapid.T, rdb redis.UniversalClient) {
		p := newPaired(rdb, rt)
		for i := range p.cfg.Windows {
			if p.cfg.Windows[i].Calendar == "" {
				p.cfg.Windows[i].Per = max(p.cfg.Windows[i].Per, time.Second)
			}
		}
		if err := p.l.Reload([]quota.Config{p.cfg}); err != nil {
			rt.Fatal(err)
		}
		most := int64(1000)
		for _, w := range p.cfg.Windows {
			room := w.Limit
			if p.cfg.Reserve < room {
				room -= p.cfg.Reserve
			}
			most = min(most, room)
		}
		var line []quota.Decision
		freed := false // since the promises were given, somebody left: now they may be early
		serve := func(until time.Time) {
			for len(line) > 0 {
				// Those that came after units were freed early may be promised sooner than those before them.
				w := slices.MinFunc(line, func(a, b quota.Decision) int { return a.At.Compare(b.At) })
				if w.At.After(until) {
					break
				}
				if !freed && w.At.Add(-time.Microsecond).After(p.hand.now()) {
					p.hand.set(w.At.Add(-time.Microsecond))
					got, err := p.l.Charge(p.ctx, quota.Request{Quota: p.name, ID: w.ID, Cost: w.Cost})
					// Promised for no other reason than that stamps are distinct, it is granted with that very stamp.
					if err != nil || !got.At.Equal(w.At) {
						rt.Fatalf("1 µs before its promise %s: %+v, %v", w.At, got, err)
					}
				}
				if w.At.After(p.hand.now()) {
					p.hand.set(w.At)
				}
				got, err := p.l.Charge(p.ctx, quota.Request{Quota: p.name, ID: w.ID, Cost: w.Cost})
				if err != nil || !got.Granted {
					rt.Fatalf("at its promise %s: %+v, %v", w.At, got, err)
				}
				line = slices.DeleteFunc(line, func(d quota.Decision) bool { return d.ID == w.ID })
			}
			if len(line) == 0 {
				freed = false
			}
		}
		var charged []string
		for i := range rapid.IntRange(5, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				to := p.hand.now().Add(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 20 * time.Second}).Draw(rt, "by"))
				serve(to)
				if to.After(p.hand.now()) {
					p.hand.set(to)
				}
			case 1:
				if len(line) > 0 {
					k := rapid.IntRange(0, len(line)-1).Draw(rt, "who")
					if err := p.l.Leave(p.ctx, p.name, line[k].ID); err != nil {
						rt.Fatal(err)
					}
					line = slices.Delete(line, k, k+1)
					freed = true
				}
			case 2:
				if len(charged) > 0 {
					if _, err := p.l.Refund(p.ctx, p.name, rapid.SampledFrom(charged).Draw(rt, "whose")); err != nil {
						rt.Fatal(err)
					}
					freed = true
				}
			default:
				r := quota.Request{Quota: p.name, ID: fmt.Sprint("w", i), Cost: rapid.Int64Range(1, most).Draw(rt, "cost")}
				got, err := p.l.Charge(p.ctx, r)
				if err != nil {
					rt.Fatal(err)
				}
				if got.Granted {
					if len(line) > 0 {
						rt.Fatalf("a newcomer was granted while %d wait", len(line))
					}
					charged = append(charged, r.ID)
				} else {
					line = append(line, got)
				}
			}
		}
		serve(p.hand.now().Add(1000 * 24 * time.Hour))
	})
}
