package web

import (
	"context"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// A session lives in its cookie, so taking the cookie from a browser does not end
// the copies of it. What a log-out ends stands in Redis until the session would
// have ended anyway, and every web server asks there.
const endedPrefix = "fw:{session}:ended:"

// endedWithin bounds the question. One that gets no answer lets in: whoever has
// the cookie then sees no more than that Redis is away.
const endedWithin = time.Second

type endings struct {
	rdb redis.UniversalClient
	log *slog.Logger
}

// note ends a session that would end at end.
func (e endings) note(ctx context.Context, s session, now time.Time) {
	left := s.end.Sub(now)
	if left <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endedWithin)
	defer cancel()
	if err := e.rdb.Set(ctx, endedKey(s), "1", left).Err(); err != nil {
		e.log.Warn("a log-out could not be noted: a copy of its cookie stays good", "name", s.key.name, "until", s.end.UTC(), "error", err)
	}
}

// noted says whether a session was ended.
func (e endings) noted(ctx context.Context, s session) bool {
	ctx, cancel := context.WithTimeout(ctx, endedWithin)
	defer cancel()
	n, err := e.rdb.Exists(ctx, endedKey(s)).Result()
	return err == nil && n > 0
}

func endedKey(s session) string { return endedPrefix + hex.EncodeToString(s.mac[:16]) }
