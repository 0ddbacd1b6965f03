package jobs

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestAsynqsErrorsOfAnOutageAreSaidEveryTenSeconds(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	a := newAsynqLog(slog.New(slog.NewTextHandler(&b, nil)))
	a.now = func() time.Time { return now }
	for range 300 { // a minute
		a.Error("Dequeue error: UNKNOWN: dial tcp: connection refused")
		a.Error("Failed to forward scheduled tasks: the same")
		now = now.Add(200 * time.Millisecond)
	}
	if n := strings.Count(b.String(), "Dequeue error"); n != 6 {
		t.Errorf("said %d times in a minute:\n%s", n, b.String())
	}
	if n := strings.Count(b.String(), "Failed to forward"); n != 6 {
		t.Errorf("another kind: %d times", n)
	}
	if !strings.Contains(b.String(), "more=49") {
		t.Errorf("it does not say how many were like it:\n%s", b.String())
	}
}
