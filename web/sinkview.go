package web

import (
	"context"
	"fmt"
	"time"

	"feedwarden/jobs"
	"feedwarden/jobs/sink"
)

// SinkView is one place where a feed's versions go, and how far it has come.
type SinkView struct {
	Sink string `json:"sink"` // its name
	Kind string `json:"kind"` // file, webhook, stream, stdout, s3
	// Delivered is the newest version that has arrived; null: none yet.
	Delivered   *int64     `json:"delivered"`
	DeliveredAt *time.Time `json:"delivered_at"`
	Deliveries  int64      `json:"deliveries"`
	Failures    int64      `json:"failures"` // tries that failed
	Lost        int64      `json:"lost"`     // versions that are not tried again
	// LastError is why a version has not arrived; "" once it, or a newer one, has.
	LastError   string     `json:"last_error"`
	LastErrorAt *time.Time `json:"last_error_at"`
}

func sinkViews(states []sink.State) []SinkView {
	out := make([]SinkView, 0, len(states))
	for _, s := range states {
		v := SinkView{
			Sink: s.Sink, Kind: s.Kind, DeliveredAt: instant(s.DeliveredAt), Deliveries: s.Deliveries,
			Failures: s.Failures, Lost: s.Lost, LastError: s.LastError, LastErrorAt: instant(s.LastErrorAt),
		}
		if s.Delivered > 0 {
			v.Delivered = &s.Delivered
		}
		out = append(out, v)
	}
	return out
}

// withSinks fills in the sinks of feeds.
func withSinks(ctx context.Context, c *jobs.Client, feeds []FeedView) error {
	all, err := c.Sinks(ctx)
	if err != nil {
		return err
	}
	for i := range feeds {
		feeds[i].Sinks = sinkViews(all[feeds[i].Name])
	}
	return nil
}

// failing says of a feed's sinks which ones do not get what they should.
func failing(v FeedView, now time.Time) []trouble {
	var out []trouble
	for _, s := range v.Sinks {
		if s.LastError != "" {
			out = append(out, trouble{Tone: "warn", Text: fmt.Sprintf("Its sink %s does not get every version; %s: %s", s.Sink, relative(s.LastErrorAt, now, "lately").Text, sentence(s.LastError))})
		}
	}
	return out
}

func collectSinks(gauge gaugeFunc, counter counterFunc, f FeedView) {
	for _, s := range f.Sinks {
		counter(sinkDeliveries, s.Deliveries, f.Name, s.Sink)
		counter(sinkFailures, s.Failures, f.Name, s.Sink)
		counter(sinkLost, s.Lost, f.Name, s.Sink)
		gauge(sinkFailing, oneIf(s.LastError != ""), f.Name, s.Sink)
		behind, delivered := int64(0), int64(0)
		if s.Delivered != nil {
			delivered = *s.Delivered
		}
		if f.Version != nil {
			behind = max(*f.Version-delivered, 0)
		}
		gauge(sinkBehind, float64(behind), f.Name, s.Sink)
	}
}
