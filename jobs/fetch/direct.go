package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
)

// Direct sends requests of any method without a proxy, one at a time and no
// redirect, under the same rules on what may be reached as a fetch. It does not
// bound the time or the answer: its caller's context does, and its caller.
func (c *Client) Direct() http.RoundTripper { return direct{c} }

type direct struct{ *Client }

// RoundTrip refuses with an error that Refused knows.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	closeBody := func() {
		if r.Body != nil {
			_ = r.Body.Close()
		}
	}
	checked, err := d.reach.check(r.URL)
	if err != nil {
		closeBody()
		return nil, err
	}
	tr, giveBack, err := d.pool.take(Via{})
	if err != nil {
		closeBody()
		return nil, err
	}
	defer giveBack()
	// The connection is closed with the request's context, until it is taken over.
	p := &progress{}
	out := r.Clone(httptrace.WithClientTrace(withOwner(r.Context()), p.trace()))
	out.URL.Host = checked.Host
	if out.Header.Get("User-Agent") == "" {
		out.Header.Set("User-Agent", d.cfg.UserAgent)
	}
	resp, err := tr.RoundTrip(out)
	if err != nil {
		if cause := context.Cause(r.Context()); cause != nil {
			err = fmt.Errorf("%w", cause)
		}
		return nil, err
	}
	return resp, nil
}

// Refused says that a rule of ours, and no failure, kept a request from going
// out.
func Refused(err error) bool {
	var p *policyError
	return errors.As(err, &p)
}
