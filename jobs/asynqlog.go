package jobs

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// asynqLog sends asynq's own log through ours. While Redis is away asynq says so
// a dozen times a second; each kind of its errors is passed on every ten seconds,
// with how many were like it.
type asynqLog struct {
	log  *slog.Logger
	now  func() time.Time
	mu   sync.Mutex
	said map[string]saying
}

// saying is an error that was passed on, and how often it came again.
type saying struct {
	at   time.Time
	more int
}

const (
	sayAgain = 10 * time.Second
	// mostSayings bounds what is remembered; asynq has a dozen kinds.
	mostSayings = 100
)

func newAsynqLog(log *slog.Logger) *asynqLog {
	return &asynqLog{log: log, now: time.Now, said: map[string]saying{}}
}

func (a *asynqLog) Debug(v ...any) { a.log.Debug("asynq", "says", fmt.Sprint(v...)) }
func (a *asynqLog) Info(v ...any)  { a.log.Info("asynq", "says", fmt.Sprint(v...)) }

// Warn says again, for the most part, what the handler has said of a job with its reason.
func (a *asynqLog) Warn(v ...any) {
	text := fmt.Sprint(v...)
	if strings.HasPrefix(text, "Retry exhausted") || strings.HasPrefix(text, "Quitting worker") {
		a.log.Debug("asynq", "says", text)
		return
	}
	a.log.Warn("asynq", "says", text)
}

func (a *asynqLog) Error(v ...any) {
	text := fmt.Sprint(v...)
	more, ok := a.turn(text)
	if !ok {
		return
	}
	a.log.Error("asynq", "says", text, "more", more)
}

// Fatal must not end the process: it is asynq's word for a failed ping.
func (a *asynqLog) Fatal(v ...any) { a.Error(v...) }

// turn says whether an error is to be passed on, and how many like it were not
// since the last that was.
func (a *asynqLog) turn(text string) (more int, ok bool) {
	kind, _, _ := strings.Cut(text, ":")
	a.mu.Lock()
	defer a.mu.Unlock()
	last, known := a.said[kind]
	now := a.now()
	if known && now.Sub(last.at) < sayAgain {
		last.more++
		a.said[kind] = last
		return 0, false
	}
	if len(a.said) >= mostSayings {
		clear(a.said)
	}
	a.said[kind] = saying{at: now}
	return last.more, true
}
