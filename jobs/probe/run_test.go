package probe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/faultkit"
	"feedwarden/internal/testredis"
)

// 1,000 candidates, 200 of them dead: what a check takes is a small part of the
// dead ones' time limits, and everybody ends where they belong.
func TestAThousandCandidatesInAFractionOfTheirTimeLimits(t *testing.T) {
	const all, dead, limit = 1000, 200, 3 * time.Second
	name := testredis.Name("probe")
	ps, _ := pools(t, name, &allocation.Require{HTTPS: true, Anonymous: true})
	j := judgeAt(t, authority(t), nil)
	urls := make([]string, all)
	hung := map[string]bool{}
	for i := range urls {
		p := proxy(t, "socks5", faultkit.Options{})
		urls[i] = p.URL().String()
		if i%(all/dead) == 0 {
			if err := p.Fail(faultkit.Hang, 0); err != nil {
				t.Fatal(err)
			}
			hung[allocation.ID(p.URL())] = true
		}
	}
	fill(t, ps, name, urls...)
	c := checker(t, Config{Judge: j.HTTP + Path, Parallel: 100, Timeout: limit})
	started := time.Now()
	got, sum := check(t, c, ps, name)
	took := time.Since(started)
	t.Logf("%d endpoints, %d dead at %s each: %s, the sum of their limits is %s", all, dead, limit, took.Round(time.Millisecond), dead*limit)
	if took > dead*limit/10 {
		t.Errorf("took %s of %s", took, dead*limit)
	}
	if sum.Checked != all || sum.OK != all-dead || sum.Failed != dead || sum.States[allocation.Probation] != all-dead || sum.States[allocation.Candidate] != dead {
		t.Fatalf("%+v", sum)
	}
	for id, r := range got {
		if hung[id] != (r.Verdict.Kind == allocation.Timeout) {
			t.Errorf("%s: %+v", id, r.Verdict)
		}
	}
	st, err := ps.State(t.Context(), name)
	if err != nil || st.Eligible != all-dead || st.Candidates != dead {
		t.Errorf("%+v %v", st, err)
	}
	groups, err := ps.Exits(t.Context(), name)
	if err != nil || len(groups) != all-dead {
		t.Errorf("%d exits, %v", len(groups), err)
	}
}

func TestACheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	name := testredis.Name("probe")
	ps, _ := pools(t, name, &allocation.Require{})
	j := judgeAt(t, authority(t), nil)
	p := proxy(t, "http", faultkit.Options{})
	if err := p.Fail(faultkit.Hang, 0); err != nil {
		t.Fatal(err)
	}
	fill(t, ps, name, p.URL().String())
	c := checker(t, Config{Judge: j.HTTP + Path})
	plan, err := c.Plan(t.Context(), ps, name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	sum, err := c.Run(ctx, ps, plan, nil)
	if !errors.Is(err, context.DeadlineExceeded) || sum.Checked != 0 {
		t.Errorf("%+v %v", sum, err)
	}
	if e, err := ps.Endpoint(t.Context(), name, plan.Endpoints[0].ID); err != nil || e.Verdict != nil {
		t.Errorf("%+v %v", e, err)
	}
}

// Two endpoints behind one exit, and one that has changed its own.
func TestSharedAndRotatingExitsAreSeen(t *testing.T) {
	t.Parallel()
	name := testredis.Name("probe")
	ps, _ := pools(t, name, &allocation.Require{})
	j := judgeAt(t, authority(t), nil)
	tiny, socks := faultkit.Tinyproxy(t, nil), faultkit.Microsocks(t, nil) // both leave by 127.0.0.1
	fill(t, ps, name, tiny.String(), socks.String())
	c := checker(t, Config{Judge: j.HTTP + Path})
	check(t, c, ps, name)
	// The same endpoint, seen with another address.
	if _, err := ps.Judge(t.Context(), name, allocation.ID(socks), allocation.Verdict{OK: true, Exit: addr("192.0.2.7")}); err != nil {
		t.Fatal(err)
	}
	groups, err := ps.Exits(t.Context(), name)
	if err != nil || len(groups) != 2 || len(groups[0].Endpoints) != 2 || groups[0].Addr != addr("127.0.0.1") || groups[0].Rotating != 1 ||
		strings.Join(groups[1].Endpoints, "") != allocation.ID(socks) {
		t.Errorf("%+v %v", groups, err)
	}
}
