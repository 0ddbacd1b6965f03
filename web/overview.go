package web

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// sharedAge is how old a reading may be that several viewers share.
const sharedAge = time.Second

// What the overview shows of each kind; the rest is on the pages behind it.
const (
	overviewFeeds  = 10
	overviewQuotas = 6
	overviewPools  = 8
	overviewJobs   = 8
)

// overviewView answers: are my feeds fresh, will the quota last, what is wrong?
type overviewView struct {
	frame
	Headline string
	Away     bool
	Troubles []trouble
	Tiles    []tile

	Feeds     []feedRow // the oldest against their ttl
	FeedCount int
	FeedsErr  string

	Quotas     []quotaCard
	QuotaCount int
	PlanErr    string

	Pools     []poolCard
	PoolCount int

	Jobs    []jobRow
	JobsErr string
}

// unreadable stands on a page where something could not be read; the log says why.
const unreadable = "This could not be read just now; the server's log says why."

func (s *Server) overview(w http.ResponseWriter, r *http.Request) {
	if _, err := pageQuery(r); err != nil {
		s.fail(w, r, err)
		return
	}
	shot, ok := s.shot(w, r)
	if !ok {
		return
	}
	now := time.Now()
	v := overviewView{frame: s.frame(r, "overview", "Overview", now)}
	v.Parts = allParts
	if shot.RedisErr != nil {
		v.Away, v.Headline = true, "Redis does not answer."
		v.Troubles = []trouble{{Tone: "bad", Text: "Nothing can be shown until it does. This page tries again by itself."}}
		w.Header().Set("Retry-After", strconv.FormatInt(ceilSeconds(redisRetry), 10))
		s.show(w, r, http.StatusServiceUnavailable, "overview", v)
		return
	}
	o, err := s.shots.outlook.get(r.Context(), forecastAge)
	if err != nil {
		s.log.Warn("could not be read", "error", err)
		o, v.PlanErr = &outlook{At: now}, unreadable
	}
	v.Headline, v.Troubles, v.Tiles = headline(shot), troubles(shot, o), tiles(shot)
	if shot.FeedsErr != nil {
		v.FeedsErr = unreadable
	}
	v.FeedCount = len(shot.Feeds)
	for _, f := range worstFirst(shot.Feeds)[:min(len(shot.Feeds), overviewFeeds)] {
		v.Feeds = append(v.Feeds, newFeedRow(f, now))
	}
	v.QuotaCount = len(shot.Quotas)
	for _, p := range worstQuotas(shot.Quotas, o)[:min(len(shot.Quotas), overviewQuotas)] {
		c := newQuotaCard(p, now)
		c.forecast(p.View, o, now)
		v.Quotas = append(v.Quotas, c)
	}
	v.PoolCount = len(shot.Pools)
	for _, p := range worstPools(shot.Pools)[:min(len(shot.Pools), overviewPools)] {
		v.Pools = append(v.Pools, newPoolCard(p, now))
	}
	recent, err := s.shots.recent.get(r.Context(), sharedAge)
	if err != nil {
		s.log.Warn("could not be read", "error", err)
		v.JobsErr = unreadable
	}
	for _, j := range recent {
		v.Jobs = append(v.Jobs, newJobRow(j, now))
	}
	s.show(w, r, http.StatusOK, "overview", v)
}

// shot is the reading that viewers share; ok is false where it was answered that
// there is none.
func (s *Server) shot(w http.ResponseWriter, r *http.Request) (*snapshot, bool) {
	shot, err := s.shots.all.get(r.Context(), sharedAge)
	if err != nil {
		s.fail(w, r, err)
		return nil, false
	}
	return shot, true
}

// readableShot is the reading of a page that has nothing to show without Redis.
func (s *Server) readableShot(w http.ResponseWriter, r *http.Request) (*snapshot, bool) {
	shot, ok := s.shot(w, r)
	if ok && shot.RedisErr != nil {
		s.fail(w, r, problem(http.StatusServiceUnavailable, "redis-away", "Redis does not answer").after(redisRetry))
		return nil, false
	}
	return shot, ok
}

// worstFirst sorts feeds by how far they are beyond their ttl; those that were
// never fetched come first, and of them those that were tried; those that are fresh
// for ever last.
func worstFirst(feeds []FeedView) []FeedView {
	return byRank(feeds, func(f FeedView) float64 {
		switch {
		case f.Version == nil && f.LastError != "":
			return 2e9
		case f.Version == nil && f.Schedule != "":
			return 1e9
		case f.Version == nil:
			return 0.5 // by hand: nobody has asked yet
		case f.TTLMS <= 0:
			return -1
		}
		return float64(f.AgeMS) / float64(f.TTLMS)
	})
}

// worstQuotas puts first those that somebody should look at: unreadable, closed, too
// small for the schedules, then the fullest.
func worstQuotas(quotas []part[Quota], o *outlook) []part[Quota] {
	return byRank(quotas, func(p part[Quota]) float64 {
		f, _ := o.quota(p.Name)
		switch {
		case p.Err != nil:
			return 400
		case p.View.BlockedUntil != nil:
			return 300
		case f.short():
			return 200
		}
		most := 0.0
		for _, w := range p.View.Windows {
			most = max(most, share(w.Used, w.Limit))
		}
		return most
	})
}

// worstPools puts first those that have the least to give.
func worstPools(pools []part[Pool]) []part[Pool] {
	return byRank(pools, func(p part[Pool]) float64 {
		if p.Err != nil {
			return 200
		}
		return 100 - share(int64(p.View.Eligible), int64(p.View.Total))
	})
}

// byRank sorts by a rank, the highest first, and leaves what has the same as it stood.
func byRank[T any](all []T, rank func(T) float64) []T {
	out := slices.Clone(all)
	slices.SortStableFunc(out, func(a, b T) int { return cmp.Compare(rank(b), rank(a)) })
	return out
}
