package quota_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"feedwarden/internal/testredis"
	"feedwarden/quota"
)

func TestEveryFaultOfAConfigAtOnce(t *testing.T) {
	t.Parallel()
	minute := []quota.Window{{Limit: 10, Per: time.Minute}}
	for what, c := range map[string]struct {
		configs []quota.Config
		want    []string
	}{
		"no name":             {[]quota.Config{{Windows: minute}}, []string{"no name"}},
		"a brace in the name": {[]quota.Config{{Name: "a}b", Windows: minute}}, []string{"brace"}},
		"no window":           {[]quota.Config{{Name: "q"}}, []string{"no window"}},
		"limits":              {[]quota.Config{{Name: "q", Windows: []quota.Window{{Limit: 0, Per: time.Minute}, {Limit: quota.MaxLimit + 1, Per: time.Minute}}}}, []string{"window 1: limit 0", "window 2: limit"}},
		"lengths":             {[]quota.Config{{Name: "q", Windows: []quota.Window{{Limit: 1}, {Limit: 1, Per: -1}, {Limit: 1, Per: 1500}}}}, []string{"window 1: length 0s", "window 2: length -1ns", "window 3: length 1.5µs"}},
		"calendars": {[]quota.Config{{Name: "q", Windows: []quota.Window{
			{Limit: 1, Calendar: "day"}, {Limit: 1, Calendar: "month", Location: time.UTC},
			{Limit: 1, Calendar: "day", Location: time.UTC, Per: time.Hour}, {Limit: 1, Per: time.Hour, Location: time.UTC}}}},
			[]string{"window 1: a calendar without a zone", `window 2: calendar "month"`, "window 3: both", "window 4: a zone without a calendar"}},
		"reserve": {[]quota.Config{{Name: "q", Windows: minute, Reserve: 11}, {Name: "r", Windows: minute, Reserve: -1}}, []string{"reserve 11", "reserve -1"}},
		"grace":   {[]quota.Config{{Name: "q", Windows: minute, Grace: -time.Second}}, []string{"grace -1s"}},
		"twice":   {[]quota.Config{{Name: "q", Windows: minute}, {Name: "q", Windows: minute}}, []string{"two quotas"}},
	} {
		_, err := quota.New(nil, c.configs)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", what, err, want)
			}
		}
	}
	if _, err := quota.New(nil, nil, quota.WithPrefix("a{b}")); err == nil {
		t.Error("a prefix with a hash tag of its own was taken")
	}
	if _, err := quota.NewLedger(quota.Config{}); err == nil {
		t.Error("a ledger without windows")
	}
}

func TestConfigsAsTheyAreKept(t *testing.T) {
	t.Parallel()
	windows := []quota.Window{{Limit: 10, Per: time.Minute}}
	l, err := quota.New(nil, []quota.Config{{Name: "b", Windows: windows}, {Name: "a", Windows: windows, Grace: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	windows[0].Limit = 99 // the caller's own
	if got := l.Names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%v", got)
	}
	if c, ok := l.Config("b"); !ok || c.Grace != 30*time.Second || c.Windows[0].Limit != 10 {
		t.Errorf("%+v", c)
	}
	if _, ok := l.Config("c"); ok {
		t.Error("a quota that no one defined")
	}
}

func TestCostsInDigitsAlone(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "0", "-1", "+1", "NaN", "Inf", "9007199254740992", "99999999999999999999", "0x10", "1e3", " 5 ", "5.0", "1_000", "٣"} {
		if n, err := quota.ParseCost(bad); !errors.Is(err, quota.ErrCost) || n != 0 {
			t.Errorf("%q: %d, %v", bad, n, err)
		}
	}
	for s, want := range map[string]int64{"1": 1, "007": 7, "9007199254740991": 1<<53 - 1} {
		if n, err := quota.ParseCost(s); err != nil || n != want {
			t.Errorf("%q: %d, %v", s, n, err)
		}
	}
}

// The scripts do not rely on the Go side for what a cost may be.
func TestScriptsRefuseCostsThatAreNoNumbers(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	for _, bad := range []string{"0", "-1", "nan", "inf", "-inf", "9007199254740992", "", "1.5", "abc", "0x10", "1e3", " 5 ", "+5", "5\n"} {
		if err := d.l.ChargeRaw(d.ctx, d.name, "a", bad); !errors.Is(err, quota.ErrCost) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if n := len(d.keys()); n != 0 {
		t.Errorf("%d keys written", n)
	}
}

func TestThePrefixIsTheCallers(t *testing.T) {
	t.Parallel()
	d := open(t, window(10, time.Minute))
	l, err := quota.New(d.rdb, []quota.Config{d.cfg}, quota.WithPrefix("other:"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := l.Charge(d.ctx, quota.Request{Quota: d.name, ID: "a", Cost: 10}); err != nil || !got.Granted {
		t.Fatal(got, err)
	}
	d.grant("b", 10)
	if n := d.rdb.Exists(d.ctx, "other:{quota:"+d.name+"}:state").Val(); n != 1 {
		t.Error("no log under the prefix")
	}
}

func TestModule(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	var l *quota.Limiter
	var leases *quota.Leases
	app := fxtest.New(t, quota.Module, fx.NopLogger,
		fx.Supply(fx.Annotate(rdb, fx.As(new(redis.UniversalClient)))),
		fx.Supply([]quota.Config{{Name: "a", Windows: []quota.Window{{Limit: 1, Per: time.Second}}}}),
		fx.Populate(&l, &leases))
	app.RequireStart()
	if got := l.Names(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v", got)
	}
	if a, err := leases.Acquire(context.Background(), "h", time.Second, quota.Running{Name: testredis.Name("host:"), Limit: 1}); err != nil || !a.Held {
		t.Errorf("%+v, %v", a, err)
	}
	app.RequireStop()
}
