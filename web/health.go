package web

import (
	"context"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
)

// readyWithin is how long Redis and the role may take to say that they are there.
const readyWithin = 3 * time.Second

// healthz: the process lives.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz: Redis answers and the role runs. Anybody may ask, so the answer does
// not say where Redis is.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	why := ""
	if err := s.p.Redis.Ping(ctx).Err(); err != nil {
		s.log.Warn("not ready", "error", err)
		why = "Redis does not answer"
		if redis.HasErrorPrefix(err, diskFault) {
			why = cannotSave
		}
	} else if s.stopping.Err() != nil {
		why = "the server is stopping"
	} else if s.p.Ready != nil {
		if err := s.p.Ready(ctx); err != nil {
			why = err.Error()
		}
	}
	if why != "" {
		s.fail(w, r, problem(http.StatusServiceUnavailable, "not-ready", why).after(redisRetry))
		return
	}
	answer := map[string]string{"status": "ready"}
	if s.p.Identity != nil {
		id := s.p.Identity()
		answer["redis_run_id"], answer["redis_role"] = id.RunID, id.Role
	}
	s.answer(w, r, http.StatusOK, answer)
}
