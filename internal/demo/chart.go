package demo

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A chart is a function of seed, region and period, which is the number of the
// minute (or of another length) since 1970. From one period to the next a few
// places change; now and then a video is new, and an old one has gone.

const (
	catalogue   = 90  // videos of a region at any time
	chartLength = 60  // of these, in the chart
	lifetime    = 240 // periods until a video is replaced
)

type video struct {
	id, title         string
	channel, owner    string // the channel's name and ID
	category          string // YouTube's numbers: 10 music, 1 film, 20 gaming
	seconds           int
	published         time.Time
	views             int64
	likes, comments   int64
	hidesLikes, mutes bool
	score             float64
}

// chart is the ranking of one region in one period, best first.
func chart(seed uint64, r region, period int64, length time.Duration) []video {
	out := make([]video, catalogue)
	for i := range out {
		out[i] = videoAt(seed, r, i, period, length)
	}
	slices.SortFunc(out, func(a, b video) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return strings.Compare(a.id, b.id)
	})
	return out[:chartLength]
}

// videoAt is the video that fills place i of a region's catalogue.
func videoAt(seed uint64, r region, i int, period int64, length time.Duration) video {
	place := hash(seed, r.code, int64(i))
	// Each place changes at its own time, so that news comes drop by drop.
	shifted := period + int64(place%lifetime)
	generation := shifted / lifetime
	age := shifted % lifetime
	h := hash(seed, r.code, int64(i), generation)
	rnd := rand.New(rand.NewPCG(h, place))

	channel := r.channels[rnd.IntN(len(r.channels))]
	v := video{
		id:         shortID(h)[:11],
		channel:    channel,
		owner:      "UC" + shortID(hash(seed, channel))[:11] + shortID(hash(seed, channel, 1))[:11],
		category:   []string{"10", "1", "20"}[rnd.IntN(3)],
		seconds:    90 + rnd.IntN(1500),
		hidesLikes: rnd.IntN(8) == 0,
		mutes:      rnd.IntN(10) == 0,
		published:  time.Unix(0, (period-age)*int64(length)).UTC().Truncate(time.Second),
	}
	v.title = r.subjects[rnd.IntN(len(r.subjects))] + " | " + r.endings[rnd.IntN(len(r.endings))]
	if n := rnd.IntN(30); n > 1 {
		v.title += fmt.Sprintf(" %d", n)
	}
	popularity := math.Exp(1.5 * rnd.NormFloat64())
	speed, phase := 0.02+0.06*rnd.Float64(), 2*math.Pi*rnd.Float64()
	v.views = int64(40_000*popularity) + int64(float64(age)*9_000*popularity)
	v.likes = v.views / int64(15+rnd.IntN(40))
	v.comments = v.views / int64(200+rnd.IntN(900))
	v.score = math.Log(popularity) - float64(age)/lifetime + 0.8*math.Sin(speed*float64(period)+phase)
	return v
}

func hash(seed uint64, s string, more ...int64) uint64 {
	h := fnv.New64a()
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seed)
	_, _ = h.Write(b[:])
	_, _ = h.Write([]byte(s))
	for _, n := range more {
		binary.BigEndian.PutUint64(b[:], uint64(n))
		_, _ = h.Write(b[:])
	}
	// One more round: neighbours in FNV are too much alike.
	x := h.Sum64()
	x ^= x >> 31
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}

func shortID(n uint64) string {
	var b [9]byte
	binary.BigEndian.PutUint64(b[1:], n)
	b[0] = byte(n >> 5)
	return base64.RawURLEncoding.EncodeToString(b[:])
}
