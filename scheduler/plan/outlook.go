package plan

import "time"

// End is how a tick that could not run at once came to its end.
type End string

// How waits end.
const (
	Granted End = "granted"
	Failed  End = "failed"  // it would have waited longer than max_snooze
	Expired End = "expired" // it had not begun by expires
)

// Wait is a tick that was refused at first.
type Wait struct {
	Tick  time.Time // when it was due
	Until time.Time // when it was granted, or what it was promised where it failed
	End   End
}

// Verdict says whether a feed keeps its ttl, and what keeps it from it.
type Verdict string

// What may be said of a feed's ttl.
const (
	Keeps      Verdict = "keeps"
	ByQuota    Verdict = "quota"    // its ticks wait for units
	BySchedule Verdict = "schedule" // its ticks are further apart, always
	ByPause    Verdict = "pause"    // some of its ticks are further apart: not at night, say
)

// Outlook is what comes to one feed.
type Outlook struct {
	Name, Group, Quota string
	Ticks              int
	Refused            []Wait // in order of their ends
	Skipped            int    // by overlap
	Missed             int    // held by overlap for longer than catch_up.within
	Failed, Expired    int
	Needed, Granted    int64   // units
	Slots              []int64 // Granted by Config.Slot; nil where nothing was granted

	Interval time.Duration // the usual distance of its ticks; 0 where there are not two
	Longest  time.Duration // the longest, with jitter
	// How old its newest version gets at worst, and from when to when that one is the newest.
	WorstAge           time.Duration
	WorstFrom, WorstTo time.Time
	LongestWait        time.Duration

	TTL     time.Duration
	Verdict Verdict
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func (k *course) outlook(t *track) Outlook {
	o := Outlook{
		Name: k.Name, Group: k.Group, Quota: k.Quota, Ticks: len(k.ticks), Refused: t.refused, Skipped: t.skipped, Missed: t.missed,
		Failed: t.failed, Expired: t.expired, Needed: int64(len(k.ticks)) * k.Cost * int64(k.Pages), Granted: t.granted, Slots: t.slots,
		Interval: micros(k.usual), Longest: micros(k.longest), WorstAge: micros(t.worst.length()), TTL: k.TTL,
		Verdict: k.verdict(t.worst.length()),
	}
	if t.worst.length() > 0 {
		o.WorstFrom, o.WorstTo = instant(t.worst.from), instant(t.worst.to)
	}
	for _, w := range t.refused {
		o.LongestWait = max(o.LongestWait, w.Until.Sub(w.Tick))
	}
	return o
}

// verdict judges the worst age.
func (k *course) verdict(worst int64) Verdict {
	ttl := k.TTL.Microseconds()
	if k.TTLAssumed {
		ttl = max(ttl, k.longest)
	}
	switch {
	case ttl == 0 || worst < ttl+short:
		return Keeps
	case worst >= k.longest+short:
		return ByQuota
	case k.usual > ttl:
		return BySchedule
	}
	return ByPause
}
