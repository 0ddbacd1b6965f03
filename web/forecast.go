package web

import (
	"context"
	"fmt"
	"time"

	"feedwarden/quota"
)

// Forecaster says what the schedules will ask of the quotas, and what they will
// get, going on from what the quotas granted in the past day, by their names.
type Forecaster interface {
	Forecast(ctx context.Context, past map[string][]Point, from time.Time, span, slot time.Duration) (*Forecast, error)
}

// Forecast is the coming hours, were all to go as scheduled: every fetch succeeds
// at once, and nobody asks but the schedules.
type Forecast struct {
	From, To time.Time
	Slot     time.Duration // the length of FeedUnits.Slots' steps
	Cut      bool          // To is earlier than asked for: there are too many ticks
	Quotas   []QuotaForecast
	Starved  []StarvedFeed
}

// QuotaForecast is what is to come to one quota.
type QuotaForecast struct {
	Name              string
	Ticks             int
	Waits             int // ticks that wait for units
	Skipped           int // ticks left out, since the feed's last job still waits
	Needed, Granted   int64
	DryTimes          int       // how often nobody gets a unit though somebody asks
	DryFrom, DryUntil time.Time // the first of them
	Feeds             []FeedUnits
}

// FeedUnits is what one feed will be granted.
type FeedUnits struct {
	Feed  string
	Units int64
	Slots []int64
}

// StarvedFeed is a feed that will not keep its ttl.
type StarvedFeed struct {
	Feed, Quota   string
	WorstAge, TTL time.Duration
	Because       string // quota, schedule or pause
}

// short says that the schedules ask for more than there will be.
func (q QuotaForecast) short() bool { return q.Granted < q.Needed && q.DryTimes > 0 }

const (
	forecastSpan = 24 * time.Hour
	forecastSlot = 15 * time.Minute
	// forecastAge is how long a plan stands: it takes a second of work where there
	// are very many ticks, and hardly changes.
	forecastAge = time.Minute
)

// outlook is a forecast beside the past that it goes on from.
type outlook struct {
	At       time.Time
	Past     map[string][]Point
	Shares   map[string][]quota.Share // who took it
	Forecast *Forecast                // nil where nobody plans
}

func (n *snapshots) readOutlook(ctx context.Context) (*outlook, error) {
	o := &outlook{At: time.Now(), Past: map[string][]Point{}, Shares: map[string][]quota.Share{}}
	for _, name := range n.server.p.Quotas.Names() {
		points, shares, err := n.server.p.Quotas.Shares(ctx, name)
		if err != nil {
			return nil, err
		}
		o.Past[name], o.Shares[name] = PointsView(points), shares
	}
	if n.server.p.Forecast == nil {
		return o, nil
	}
	var err error
	o.Forecast, err = n.server.p.Forecast.Forecast(ctx, o.Past, o.At, forecastSpan, forecastSlot)
	return o, err
}

func (o *outlook) quota(name string) (QuotaForecast, bool) {
	if o != nil && o.Forecast != nil {
		for _, q := range o.Forecast.Quotas {
			if q.Name == name {
				return q, true
			}
		}
	}
	return QuotaForecast{}, false
}

// ahead is how far the forecast looks.
func (o *outlook) ahead() string {
	d := o.Forecast.To.Sub(o.Forecast.From).Round(time.Minute)
	if d%time.Hour == 0 {
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return span(d)
}

// lasting says whether a quota will last, and how bad it is if not.
func (o *outlook) lasting(name string, now time.Time) (text, tone string) {
	q, ok := o.quota(name)
	if !ok {
		return "What is to come is not known here: no plan was made.", "info"
	}
	ahead := o.ahead()
	if o.Forecast.Cut {
		ahead += " (more ticks than are looked at follow)"
	}
	if q.Ticks == 0 {
		return "No schedule asks for it in the coming " + ahead + ".", "good"
	}
	asks := fmt.Sprintf("the schedules ask for %s in the coming %s", counted(int(q.Needed), "unit"), ahead)
	if q.Waits+q.Skipped == 0 {
		return "It lasts: " + asks + ", and each tick gets its own when it is due.", "good"
	}
	held := fmt.Sprintf("%s of %s %s", grouped(int64(q.Waits)), counted(q.Ticks, "tick"), plural(q.Waits, "waits", "wait"))
	if q.Skipped > 0 {
		held += fmt.Sprintf(", %s %s left out meanwhile", grouped(int64(q.Skipped)), plural(q.Skipped, "is", "are"))
	}
	if q.Granted < q.Needed {
		asks += fmt.Sprintf(" and get %s", grouped(q.Granted))
	}
	text = "It will not last: " + asks + "; " + held + "."
	if q.DryTimes > 0 {
		from := "now"
		if d := q.DryFrom.Sub(now); d >= time.Second {
			from = "in " + span(d.Round(time.Second)) + ", at " + q.DryFrom.UTC().Format("15:04") + " UTC"
		}
		text += fmt.Sprintf(" First used up %s, for %s.", from, span(q.DryUntil.Sub(q.DryFrom).Round(time.Second)))
	}
	return text, "warn"
}
