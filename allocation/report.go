package allocation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Outcome is what became of a request through an endpoint.
type Outcome string

const (
	OK      Outcome = "ok"      // an answer came, whatever its status: a 404 is one
	Connect Outcome = "connect" // the endpoint could not be reached
	// Unreachable: the endpoint answers, and says that it has no way to the target.
	// Which of the two is to blame shows when others are asked.
	Unreachable Outcome = "unreachable"
	TLS         Outcome = "tls"        // no proper TLS through it
	ProxyAuth   Outcome = "proxy-auth" // it refused our credentials (407)
	Timeout     Outcome = "timeout"    // no answer in time
	Reset       Outcome = "reset"      // cut off in the middle
	Ban         Outcome = "ban"        // the target refuses this endpoint
	Target5xx   Outcome = "target-5xx" // the target itself is unwell
	Cancelled   Outcome = "cancelled"  // we stopped; nothing is known
)

// Outcomes are all of them, in the order of the constants.
var Outcomes = []Outcome{OK, Connect, Unreachable, TLS, ProxyAuth, Timeout, Reset, Ban, Target5xx, Cancelled}

// ErrOutcome: a report with a word that is no Outcome.
var ErrOutcome = errors.New("unknown outcome")

// effect says what a report does to the endpoint's health: report.lua's word for it.
func (o Outcome) effect() (string, error) {
	switch o {
	case OK:
		return "clear", nil
	case Connect, Unreachable, TLS, Timeout, Reset:
		return "strike", nil
	case ProxyAuth:
		return "auth", nil
	case Ban:
		return "ban", nil
	case Target5xx:
		return "witness", nil
	case Cancelled:
		return "none", nil
	}
	words := make([]string, len(Outcomes))
	for i, known := range Outcomes {
		words[i] = string(known)
	}
	return "", fmt.Errorf("%w: use one of %s", ErrOutcome, strings.Join(words, ", "))
}

// A Report says what became of an allocation.
type Report struct {
	Pool, ID   string
	Lease      string // the allocation's: released whatever the outcome
	Target     string // host that was asked; without it nothing is held against a target
	Outcome    Outcome
	RetryAfter time.Duration // a quarantine, ban or pause lasts at least so long (a day at most)
}

const (
	gatewayFailures = 3              // in a row, before a gateway is quarantined
	longestAsked    = 24 * time.Hour // a RetryAfter beyond it is not believed
)

// Report records an outcome and releases the lease. It is for one allocation and
// is to be called once: a call that the client itself sends again after a lost
// reply counts once, a second call is a second outcome. ErrUnknownEndpoint when the
// endpoint was removed meanwhile (its lease is released all the same).
func (p *Pools) Report(ctx context.Context, r Report) error {
	c, err := p.pool(r.Pool)
	if err != nil {
		return failed("report", r.Pool, err)
	}
	effect, err := r.Outcome.effect()
	if err != nil {
		return failed("report", r.Pool, err)
	}
	reply, err := p.outcome(ctx, reportScript, c, targetName(r.Target), r.ID, effect, string(r.Outcome), r.RetryAfter, r.Lease)
	if err != nil {
		return failed("report", r.Pool, err)
	}
	switch reply {
	case "ok", "blamed":
		return nil
	case "unknown":
		return failed("report", r.Pool, unknownEndpoint(r.ID))
	}
	return failed("report", r.Pool, fmt.Errorf("unexpected reply %v", reply))
}

// outcome runs a script that follows outcome.lua.
func (p *Pools) outcome(ctx context.Context, s *redis.Script, c *bound, target, id, effect, why string, least time.Duration, more ...any) (any, error) {
	need := 1
	if c.Gateway {
		need = gatewayFailures
	}
	this := c.calls.lend()
	defer c.calls.back(this)
	k := keysOf(c.Name)
	names := k.members(append(append([]string{"held"}, leaseKeys...), "checks", this.name)...)
	if target != "" {
		d := digest(target)
		names = append(names, k.prefix+"target:"+d, k.prefix+"bad:"+d, k.prefix+"good:"+d, k.prefix+"strikes:"+d, k.prefix+"targets")
	}
	args := append([]any{c.start(), this.number, id, effect, why,
		c.Quarantine.Base.Microseconds(), c.Quarantine.Max.Microseconds(), min(max(least, 0), longestAsked).Microseconds(),
		need, c.Quarantine.BlameTargetAbove, target}, more...)
	return p.run(ctx, s, names, args...)
}
