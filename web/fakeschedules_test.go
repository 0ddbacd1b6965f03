package web

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// fakeSchedules is a scheduler that remembers what was asked of it.
type fakeSchedules struct {
	mu    sync.Mutex
	views []ScheduleView
	err   error
	calls []string
}

func newFakeSchedules() *fakeSchedules {
	next, last := time.Now().Add(5*time.Minute), time.Now().Add(-10*time.Minute)
	return &fakeSchedules{views: []ScheduleView{
		{Name: "news", Feed: "news", Expression: "@every 10m", State: "active", NextAt: instant(next.Add(time.Minute)), LastAt: instant(last)},
		{Name: "trending-bd", Feed: "trending-bd", Expression: "*/15 * * * *", Timezone: "Asia/Dhaka", State: "active", NextAt: instant(next)},
	}}
}

func (f *fakeSchedules) List(context.Context) ([]ScheduleView, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]ScheduleView(nil), f.views...), f.err
}

func (f *fakeSchedules) change(name, call string, do func(*ScheduleView)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
	if f.err != nil {
		return f.err
	}
	for i := range f.views {
		if f.views[i].Name == name {
			do(&f.views[i])
			return nil
		}
	}
	return fmt.Errorf("fake: %q: %w", name, ErrUnknownSchedule)
}

func (f *fakeSchedules) Pause(_ context.Context, name, who string, until time.Time) error {
	return f.change(name, "pause "+name+" by "+who, func(v *ScheduleView) {
		v.State, v.PausedBy, v.PausedUntil = "paused", who, instant(until)
	})
}

func (f *fakeSchedules) Resume(_ context.Context, name, who string) error {
	return f.change(name, "resume "+name+" by "+who, func(v *ScheduleView) {
		v.State, v.PausedBy, v.PausedUntil = "active", "", nil
	})
}

func (f *fakeSchedules) Trigger(_ context.Context, name, who string) (string, error) {
	return "trigger-1f2e3d4c", f.change(name, "trigger "+name+" by "+who, func(*ScheduleView) {})
}
