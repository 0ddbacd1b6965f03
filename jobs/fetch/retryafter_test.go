package fetch

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		values []string
		want   time.Duration
		ok     bool
	}{
		{"seconds", []string{"120"}, 2 * time.Minute, true},
		{"blanks around", []string{" 7\t"}, 7 * time.Second, true},
		{"zero", []string{"0"}, 0, true},
		{"leading zeros", []string{"0090"}, 90 * time.Second, true},
		{"date, RFC 1123", []string{"Mon, 30 Nov 2026 08:02:00 GMT"}, 2 * time.Minute, true},
		{"date, RFC 850", []string{"Monday, 30-Nov-26 08:02:00 GMT"}, 2 * time.Minute, true},
		{"date, asctime", []string{"Mon Nov 30 08:02:00 2026"}, 2 * time.Minute, true},
		{"date that has passed", []string{"Sun, 06 Nov 1994 08:49:37 GMT"}, 0, true},
		{"two-digit year of the last century", []string{"Sunday, 06-Nov-94 08:49:37 GMT"}, 0, true},
		{"date far ahead", []string{"Fri, 30 Nov 2040 08:00:00 GMT"}, MaxRetryAfter, true},
		{"negative", []string{"-5"}, 0, false},
		{"fraction", []string{"1.5"}, 0, false},
		{"signed", []string{"+5"}, 0, false},
		{"hexadecimal", []string{"0x10"}, 0, false},
		{"exponent", []string{"1e3"}, 0, false},
		{"2^70", []string{"1180591620717411303424"}, MaxRetryAfter, true},
		{"rubbish", []string{"soon"}, 0, false},
		{"empty", []string{""}, 0, false},
		{"none", nil, 0, false},
		{"several: the longest", []string{"5", "soon", "60", "10"}, time.Minute, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := RetryAfter(http.Header{"Retry-After": tt.values}, now)
			if got != tt.want || ok != tt.ok {
				t.Errorf("RetryAfter(%q) = %v, %v; want %v, %v", tt.values, got, ok, tt.want, tt.ok)
			}
		})
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"120", "-5", "1.5", "Mon, 30 Nov 2026 08:02:00 GMT", "Monday, 30-Nov-26 08:02:00 GMT", "1180591620717411303424", "\x00"} {
		f.Add(s, int64(1_796_025_600))
	}
	f.Fuzz(func(t *testing.T, s string, unix int64) {
		now := time.Unix(unix%(1<<36), 0)
		d, ok := RetryAfter(http.Header{"Retry-After": {s}}, now)
		if d < 0 || d > MaxRetryAfter || !ok && d != 0 {
			t.Fatalf("RetryAfter(%q) = %v, %v", s, d, ok)
		}
		again, _ := RetryAfter(http.Header{"Retry-After": {" " + s + " "}}, now)
		if again != d {
			t.Fatalf("RetryAfter(%q) depends on blanks around it: %v, %v", s, d, again)
		}
	})
}
