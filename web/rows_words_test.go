package web

import "testing"

// The reserve is kept in windows larger than it: of what a minute has left none
// is kept from scheduled jobs while the day has plenty.
func TestCardCountsWhatIsLeftForScheduledJobs(t *testing.T) {
	t.Parallel()
	windows := func(day, minute int64) []Used {
		return []Used{{Limit: 10000, PerMS: 86_400_000, Used: day}, {Limit: 300, PerMS: 60_000, Used: minute}}
	}
	for name, c := range map[string]struct {
		q    Quota
		want int64
	}{
		"a fresh minute":     {Quota{Remaining: 299, Reserve: 500, Windows: windows(5, 1)}, 299},
		"the day ends":       {Quota{Remaining: 299, Reserve: 500, Windows: windows(9400, 1)}, 100},
		"only the reserve":   {Quota{Remaining: 299, Reserve: 500, Windows: windows(9600, 1)}, 0},
		"nothing is kept":    {Quota{Remaining: 20, Windows: windows(9980, 0)}, 20},
		"the minute is full": {Quota{Remaining: 0, Reserve: 500, Windows: windows(5, 300)}, 0},
	} {
		if got := scheduledLeft(c.q); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
