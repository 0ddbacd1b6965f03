package allocation_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/testredis"
)

func TestNewJoinsAllFaults(t *testing.T) {
	t.Parallel()
	_, err := allocation.New(testredis.Client(t), []allocation.Config{
		{Name: "a{b}"},
		{Name: "direct"},
		{Name: ""},
		{Name: "twice"}, {Name: "twice"},
		{Name: "p1", Policy: "round-robin"},
		{Name: "p2", Alone: "never"},
		{Name: "p3", Start: "-1"},
		{Name: "p4", Cap: -1},
		{Name: "p5", Lease: time.Microsecond},
		{Name: "p6", Quarantine: allocation.QuarantineConfig{Base: time.Hour, Max: time.Minute}},
		{Name: "p7", Quarantine: allocation.QuarantineConfig{BlameTargetAbove: 1.5}},
		{Name: "p8", Format: "csv"},
		{Name: "p9", Start: "99999999999999"},
	})
	if err == nil {
		t.Fatal("all of it is accepted")
	}
	for _, want := range []string{`"a{b}"`, `"direct"`, `pool ""`, `"twice": the name is there twice`, `policy "round-robin" is unknown: use one of`,
		`alone "never"`, `start "-1"`, `cap -1`, `lease 1µs`, `max 1m0s is below base 1h0m0s`, `blame_target_above 1.5`, `format "csv"`, `start "99999999999999"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	p, err := allocation.New(testredis.Client(t), []allocation.Config{{Name: "b"}, {Name: "a", Quarantine: allocation.QuarantineConfig{Base: 2 * time.Hour}}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Names(), []string{"a", "b"}) {
		t.Errorf("names are %v", p.Names())
	}
	got, ok := p.Config("b")
	want := allocation.Config{Name: "b", Policy: "least-used", Alone: "reuse", Start: "floor", Cap: 8, Lease: time.Minute, Stick: 24 * time.Hour,
		Quarantine: allocation.QuarantineConfig{Base: 30 * time.Second, Max: time.Hour, BlameTargetAbove: 0.5}, Format: "auto"}
	if !ok || got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if a, _ := p.Config("a"); a.Quarantine.Max != 2*time.Hour {
		t.Errorf("max is %s, want no less than base", a.Quarantine.Max)
	}
	if _, ok := p.Config("c"); ok {
		t.Error("a pool that is not there has a config")
	}
}
