package units

import (
	"testing"
	"testing/quick"
	"time"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "1d": 24 * time.Hour, "2d12h": 60 * time.Hour, "1d0.5h": 24*time.Hour + 30*time.Minute,
		"1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond, "-3s": -3 * time.Second, "106751d": 106751 * 24 * time.Hour,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "1", "1w", "1d1", "1d-1h", "1d+1h", "1d1d", "-1d", "1.5d", "106752d", "106751d23h59m", "999999999999d", "1 d", "1D", "1h1d"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
}

func TestFormattedDurationsReadBack(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 24 * time.Hour: "24h", 90 * time.Second: "1m30s", time.Hour + time.Second: "1h0m1s", 20 * time.Minute: "20m", time.Millisecond: "1ms"} {
		if got := FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%d) = %s, want %s", d, got, want)
		}
	}
	if err := quick.Check(func(n int64) bool {
		d, err := ParseDuration(FormatDuration(time.Duration(n)))
		return err == nil && d == time.Duration(n)
	}, nil); err != nil {
		t.Error(err)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "512": 512, "64KiB": 65536, "16MiB": 16 << 20, "2GiB": 2 << 30, "1KB": 1000, "3MB": 3e6, "1GB": 1e9, "7B": 7} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "1.5MiB", "-1", "1 MiB", "1mib", "1K", "9999999999GiB", "99999999999999999999", "1TiB"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
	if err := quick.Check(func(n int64) bool {
		n = max(n, -n, 0) % 1e17
		got, err := ParseSize(FormatSize(n))
		return err == nil && got == n
	}, nil); err != nil {
		t.Error(err)
	}
}
