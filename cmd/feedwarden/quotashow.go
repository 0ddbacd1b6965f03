package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"feedwarden/quota"
	"feedwarden/web"
)

type quotaShowCmd struct {
	Name string `arg:"" help:"The quota, or host:HOST."`
}

func (c *quotaShowCmd) Run(e *env) error {
	return e.with(func(s *session) error {
		if host, isHost, err := hostOf(c.Name); err != nil || isHost {
			if err == nil {
				err = s.showHost(host)
			}
			return err
		}
		st, view, err := s.quota(c.Name)
		if err != nil {
			return err
		}
		points, shares, err := s.quotas.Shares(s.ctx, c.Name)
		if err != nil {
			return err
		}
		view.History, view.HistoryLabels = web.PointsView(points), web.SharesView(shares)
		t := e.table("", quotaHeader...)
		if err := t.add(view, quotaCells(st)...); err != nil {
			return err
		}
		if err := t.flush(); err != nil || e.json {
			return err
		}
		fmt.Fprintln(e.out)
		if err := e.facts(quotaFacts(st, view.Running, points)); err != nil || len(st.Waiters) == 0 {
			return err
		}
		fmt.Fprintln(e.out)
		line := e.table("", "PLACE", "CLASS", "CHARGE", "COST", "PROMISED", "WAITING")
		for _, w := range st.Waiters {
			err := line.add(nil, fmt.Sprint(w.Position), w.Priority.String(), w.ID, fmt.Sprint(w.Cost), instant(&w.Promised, st.Now), span(st.Now.Sub(w.Since)))
			if err != nil {
				return err
			}
		}
		return line.flush()
	})
}

// quota reads one as it stands, with who runs.
func (s *session) quota(name string) (quota.State, web.Quota, error) {
	st, err := s.quotas.State(s.ctx, name)
	if err != nil {
		return st, web.Quota{}, err
	}
	running, err := s.leases.State(s.ctx, "quota:"+name)
	if err != nil {
		return st, web.Quota{}, err
	}
	view, now := web.QuotaView(st), web.RunningView(running)
	view.Running = &now
	return st, view, nil
}

// facts prints what is known of one thing, a fact a line.
func (e *env) facts(all [][2]string) error {
	t := e.table("", all[0][0], all[0][1])
	for _, f := range all[1:] {
		if err := t.add(nil, f[0], f[1]); err != nil {
			return err
		}
	}
	return t.flush()
}

// quotaFacts are what a person wants to know of a quota besides its row.
func quotaFacts(s quota.State, running *web.Running, points []quota.Point) [][2]string {
	facts := [][2]string{
		{"RUNNING", runs(running)},
		{"LONGEST WAIT", orDash(waited(s.LongestWait))},
		{"UNITS", fmt.Sprintf("%d granted, %d given back in %s", s.Units, s.Refunded, count(int(s.Refunds), "refund"))},
		{"BLOCKED", blocks(s)},
		{"SNOOZES", spread(s.Snoozes, timesSnoozed) + mean(float64(s.SnoozeSum), s.Snoozes, func(m float64) string {
			return fmt.Sprintf("%.2f a grant", m)
		})},
		{"LATENESS", spread(s.Lateness, func(sec float64) string { return span(seconds(sec)) }) + mean(s.LatenessSum.Seconds(), s.Lateness, func(m float64) string {
			return span(seconds(m)) + " on average"
		})},
	}
	return append(facts, pastDay(points)...)
}

func timesSnoozed(n float64) string {
	if n == 0 {
		return "never"
	}
	return strconv.Itoa(int(n))
}

func runs(r *web.Running) string {
	limit := "no limit"
	if r.Limit != nil {
		limit = fmt.Sprintf("%d at most", *r.Limit)
	}
	return fmt.Sprintf("%d, %s; %d wait for that", r.Running, limit, r.Waiting)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func waited(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return span(d)
}

func blocks(s quota.State) string {
	text := fmt.Sprintf("%s so far", count(int(s.Blocks), "time"))
	if !s.BlockedUntil.IsZero() {
		text = fmt.Sprintf("until %s: %s; %s", instant(&s.BlockedUntil, s.Now), orDash(s.BlockReason), text)
	}
	return text
}

// spread is a histogram on a line: what each step holds by itself, steps that hold nothing left out.
func spread(buckets []quota.Bucket, name func(float64) string) string {
	var parts []string
	before, last := int64(0), ""
	for i, b := range buckets {
		step := "more"
		if i < len(buckets)-1 {
			step = name(b.UpTo)
			if b.UpTo != 0 && (i == 0 || b.UpTo-buckets[i-1].UpTo != 1) {
				step = "to " + step
			}
			last = name(b.UpTo)
		} else {
			step += " than " + last
		}
		if n := b.Count - before; n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", step, n))
		}
		before = b.Count
	}
	return orDash(strings.Join(parts, ", "))
}

// mean is what follows a histogram that holds something.
func mean(sum float64, buckets []quota.Bucket, say func(float64) string) string {
	n := buckets[len(buckets)-1].Count
	if n == 0 {
		return ""
	}
	return "; " + say(sum/float64(n))
}

// pastDay draws units and refusals, half an hour a column: a day fits into 80 columns.
func pastDay(points []quota.Point) [][2]string {
	units, refused := make([]int64, len(points)/2), make([]int64, len(points)/2)
	for i, p := range points[:len(points)/2*2] {
		units[i/2] += p.Units
		refused[i/2] += p.Refused
	}
	return [][2]string{{"GRANTED 24H", bars(units, "units")}, {"REFUSED 24H", bars(refused, "asked")}}
}

// bars draws numbers as blocks, the largest as a full one, and says how large that is.
func bars(values []int64, what string) string {
	const blocks = "▁▂▃▄▅▆▇█"
	most := int64(0)
	for _, v := range values {
		most = max(most, v)
	}
	if most == 0 {
		return "none"
	}
	var b strings.Builder
	for _, v := range values {
		if v == 0 {
			b.WriteRune('·')
			continue
		}
		i := int((float64(v)*8 + float64(most) - 1) / float64(most))
		b.WriteRune([]rune(blocks)[min(max(i, 1), 8)-1])
	}
	return fmt.Sprintf("%s up to %d %s", b.String(), most, what)
}
