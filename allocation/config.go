package allocation

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// The policies: which eligible endpoint a Take picks.
const (
	LeastUsed = "least-used" // the lowest count + handicap, ties at random
	Random    = "random"     // each draw independent of the others
	NoRepeat  = "no-repeat"  // at random, never the pool's previous one
	Shuffled  = "shuffled"   // each once a pass, each pass in a new order
	LeastBusy = "least-busy" // the fewest leases in flight, up to a cap
	Sticky    = "sticky"     // the same one per key while it is eligible
)

var policies = []string{LeastUsed, Random, NoRepeat, Shuffled, LeastBusy, Sticky}

// What a no-repeat pool does when nothing but its previous endpoint is eligible.
const (
	AloneReuse = "reuse" // gives it again
	AloneWait  = "wait"  // *EmptyError, until another becomes eligible
	AloneStop  = "stop"  // ErrAlone
)

// Where a new or returning endpoint's score starts; a whole number is the third choice.
const (
	StartFloor = "floor" // level with the lowest score among the eligible
	StartZero  = "zero"
)

// Config is one pool. The zero value of a field means its default.
type Config struct {
	Name   string
	Policy string // least-used by default
	Alone  string // no-repeat: reuse (default), wait, stop
	Start  string // floor (default), zero, or a whole number

	Cap   int           // least-busy: leases per endpoint, 8 by default
	Lease time.Duration // least-busy: life of a lease, 60 s by default
	Stick time.Duration // sticky: how long an unused key is remembered, 24 h by default

	// Gateway marks endpoints that rotate their own exits: one failure says
	// little of the next request, so only three in a row count.
	Gateway    bool
	Quarantine QuarantineConfig

	// Require: imported endpoints are candidates until a check found them to be
	// so. nil: what is imported serves at once.
	Require *Require

	AllowPrivate bool   // endpoints may be private or loopback addresses
	Format       string // of imported lists: FormatAuto (default), FormatUserFirst
}

// QuarantineConfig says how long a failing endpoint stays out.
type QuarantineConfig struct {
	Base time.Duration // the first quarantine, 30 s by default; each further one doubles it
	Max  time.Duration // the longest, 1 h by default
	// BlameTargetAbove is the share of endpoints that fail on one target from
	// which the target is paused and the endpoints are not blamed; 0.5 by default.
	BlameTargetAbove float64
}

// A name is part of every Redis key's hash tag, so braces cannot be in it.
var poolName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (c Config) withDefaults() Config {
	setDefault(&c.Policy, LeastUsed)
	setDefault(&c.Alone, AloneReuse)
	setDefault(&c.Start, StartFloor)
	setDefault(&c.Format, FormatAuto)
	setDefault(&c.Cap, 8)
	setDefault(&c.Lease, time.Minute)
	setDefault(&c.Stick, 24*time.Hour)
	setDefault(&c.Quarantine.Base, 30*time.Second)
	setDefault(&c.Quarantine.Max, max(time.Hour, c.Quarantine.Base))
	setDefault(&c.Quarantine.BlameTargetAbove, 0.5)
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// faults checks a config that has its defaults and joins all that is wrong.
func (c Config) faults() error {
	var all []error
	wrong := func(format string, a ...any) {
		all = append(all, fmt.Errorf("pool %q: "+format, append([]any{c.Name}, a...)...))
	}
	if !poolName.MatchString(c.Name) {
		wrong("the name must be 1 to 64 letters, digits, dots, hyphens or underscores, and start with a letter or digit")
	}
	if c.Name == "direct" {
		wrong("the name direct is taken: it means no proxy at all")
	}
	if c.Name == "environment" {
		wrong("the name environment is taken: it means the proxies that HTTP_PROXY and HTTPS_PROXY name")
	}
	if !slices.Contains(policies, c.Policy) {
		wrong("policy %q is unknown: use one of %v", c.Policy, policies)
	}
	if !slices.Contains([]string{AloneReuse, AloneWait, AloneStop}, c.Alone) {
		wrong("alone %q is unknown: use reuse, wait or stop", c.Alone)
	}
	if _, err := startScore(c.Start); err != nil {
		wrong("start %q is unknown: use floor, zero or a whole number from 0 to %d", c.Start, int64(maxStart))
	}
	if c.Format != FormatAuto && c.Format != FormatUserFirst {
		wrong("format %q is unknown: use %s or %s", c.Format, FormatAuto, FormatUserFirst)
	}
	if c.Cap < 1 {
		wrong("cap %d is too small: use 1 or more", c.Cap)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"lease", c.Lease}, {"stick", c.Stick}, {"quarantine base", c.Quarantine.Base}, {"quarantine max", c.Quarantine.Max}} {
		if d.value < time.Millisecond || d.value > maxDuration {
			wrong("%s %s is out of range: use 1ms to %s", d.name, d.value, maxDuration)
		}
	}
	if c.Quarantine.Max < c.Quarantine.Base {
		wrong("quarantine max %s is below base %s", c.Quarantine.Max, c.Quarantine.Base)
	}
	if r := c.Require; r != nil && (r.MaxLatency < 0 || r.MaxLatency > maxDuration) {
		wrong("require max_latency %s is out of range: use a duration above 0, or 0 for any", r.MaxLatency)
	}
	if b := c.Quarantine.BlameTargetAbove; !(b > 0 && b <= 1) {
		wrong("blame_target_above %v is out of range: use a share above 0, up to 1 (1 never blames a target)", b)
	}
	return errors.Join(all...)
}

const (
	maxStart    = 1 << 40 // scores stay exact in a double, with room to grow
	maxDuration = 365 * 24 * time.Hour
)

// startScore gives the scripts' form of a start: "floor" or a number.
func startScore(start string) (string, error) {
	switch start {
	case StartFloor:
		return start, nil
	case StartZero:
		return "0", nil
	}
	n, err := strconv.ParseUint(start, 10, 64)
	if err != nil || n > maxStart {
		return "", errors.New("not a start")
	}
	return strconv.FormatUint(n, 10), nil
}

// start is startScore of a config without faults.
func (c Config) start() string {
	s, _ := startScore(c.Start)
	return s
}
