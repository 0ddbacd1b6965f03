package allocation

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Require is what a check must have found before an endpoint serves.
type Require struct {
	HTTPS      bool          // a tunnel to an https judge, with TLS to the judge's own certificate
	MaxLatency time.Duration // of the check's request; 0: any
	Anonymous  bool          // no header told the judge of the caller
}

// A Verdict is what one check found.
type Verdict struct {
	OK      bool    // it carried the request, and the judge's answer came back
	Kind    Outcome // when not OK: what became of it
	HTTPS   bool    // a tunnel with TLS worked
	Latency time.Duration
	Alters  bool       // what came was not what the judge had sent
	Reveals bool       // it told the judge of the caller
	Exit    netip.Addr // the address that the judge saw; zero when it saw none
	Detail  string     // for a person; never a secret
	At      time.Time  // zero: now
}

// ErrVerdict: a verdict that is not OK and names no failure.
var ErrVerdict = errors.New("a verdict that is not ok needs the outcome of the check, and one that is ok has none but ok")

// lacks says what of a requirement a working endpoint does not meet; "" when it
// meets all. Who alters content is never what anybody requires.
func (r *Require) lacks(v Verdict) string {
	switch {
	case r == nil:
		return ""
	case v.Alters:
		return "alters content"
	case r.HTTPS && !v.HTTPS:
		return "no https"
	case r.Anonymous && v.Reveals:
		return "reveals the caller"
	case r.MaxLatency > 0 && v.Latency > r.MaxLatency:
		return "too slow"
	}
	return ""
}

// ruling is what a verdict does to an endpoint: judge.lua's word for it, "" when
// the check says nothing of the endpoint, and why.
func (r *Require) ruling(v Verdict) (effect, why string, err error) {
	if v.OK {
		if v.Kind != "" && v.Kind != OK {
			return "", "", ErrVerdict
		}
		if why := r.lacks(v); why != "" {
			return "unfit", why, nil
		}
		return "pass", "", nil
	}
	switch v.Kind {
	case ProxyAuth:
		return "auth", string(v.Kind), nil
	case Connect, Unreachable, TLS, Timeout, Reset, Ban:
		return "strike", string(v.Kind), nil
	case Target5xx, Cancelled:
		return "", "", nil
	case "", OK:
		return "", "", ErrVerdict
	}
	return "", "", fmt.Errorf("%w %q", ErrOutcome, v.Kind)
}

// refit says whether a changed requirement moves an endpoint: in from the
// candidates, or out to them, and why. Whoever was never judged stays where it is,
// so that a requirement does not empty a pool before the first check; a
// requirement that is gone lets all candidates in.
func (r *Require) refit(state string, v *Verdict) (in bool, out string) {
	judged := v != nil && v.OK
	switch state {
	case Candidate:
		return r == nil || judged && r.lacks(*v) == "", ""
	case Active, Probation, Quarantined:
		if judged {
			return false, r.lacks(*v)
		}
	}
	return false, ""
}
