package fetch

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Request is one GET.
type Request struct {
	URL    string
	Header http.Header
	// Keyed says that the request carries a secret: it never leaves its origin
	// by a redirect.
	Keyed bool
	// Follow is asked before a redirect is followed; its error ends the fetch as
	// KindPolicy, and errors.As finds it. nil: all that policy allows are followed.
	Follow func(ctx context.Context, to *url.URL) error
	// First reads no more than so many decoded bytes of the body and leaves the
	// rest: where the beginning says enough. 0 is the whole.
	First int64
	// Hide takes secrets out of a text that tells of the request, beyond those that
	// are known by their place: one may stand in the URL's path. nil: there are none.
	Hide func(text string) string
	// Label is not sent; it comes back in the Response, for whoever built the
	// request.
	Label string
}

// Shown is a text that tells of the request, without what Hide takes out.
func (r Request) Shown(text string) string {
	if r.Hide == nil {
		return text
	}
	return r.Hide(text)
}

// Via is the endpoint that carries a request.
type Via struct {
	ID    string
	Proxy *url.URL // nil is a direct connection
	// Environment takes the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name
	// for each hop's URL, and a direct connection where they name none. They are
	// read when the Client is made. Proxy is nil then.
	Environment bool
	// PublicOnly refuses a proxy that is dialled at a private address, also one
	// whose name came to stand for one: as a connection that failed.
	PublicOnly bool
}

// Response is a whole answer, of any status.
type Response struct {
	Status int
	// Header is the answer's, without Content-Encoding and Content-Length:
	// Body is decoded.
	Header http.Header
	Body   []byte
	// URL is where the answer came from, after redirects, without user or
	// password. Its query may hold what must not be shown: see Redact.
	URL       *url.URL
	Redirects int
	Label     string
	Took      time.Duration
}

// Client fetches through endpoints. It is safe for concurrent use.
type Client struct {
	cfg   Config
	reach reach
	pool  *transports
	// environment finds the proxy for a URL in the variables of the process.
	environment func(*url.URL) (*url.URL, error)
}

// New makes a client; it does no I/O.
func New(cfg Config) *Client {
	cfg = cfg.withDefaults()
	return &Client{cfg: cfg, reach: newReach(cfg), pool: newTransports(cfg), environment: httpproxy.FromEnvironment().ProxyFunc()}
}

// Header is what a request is sent with, on its first hop.
func (c *Client) Header(req Request) (http.Header, error) {
	return requestHeader(req.Header, c.cfg.UserAgent)
}

// Close drops all kept connections. Fetches that run end on their own; later
// ones fail.
func (c *Client) Close() { c.pool.close() }

// Do sends the request through via and reads the whole answer. Every error is
// an *Error. A status of 400 or above is an answer, not an error; a 407 of the
// proxy is an error.
func (c *Client) Do(ctx context.Context, req Request, via Via) (*Response, error) {
	started := time.Now()
	target, err := parseTarget(req.URL)
	secrets := secretsOf(target, req.Header, req.Keyed, via.Proxy)
	caller, hops := ctx, 0
	fail := func(err error, p *progress) error {
		id := via.ID
		if id == "" {
			id = directID
		}
		kind := classify(err, p)
		if caller.Err() != nil && kind != KindPolicy {
			kind, err = callerEnded(caller)
		}
		return &Error{Kind: kind, URL: req.Shown(shown(target)), Via: id, Unsent: hops == 0 && (p == nil || !p.ready.Load()), Err: scrub(err, secrets, req.Shown)}
	}
	if err != nil {
		return nil, fail(err, nil)
	}
	if err := checkVia(via); err != nil {
		return nil, fail(err, nil)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	total := time.AfterFunc(c.cfg.Timeout, func() {
		cancel(fmt.Errorf("%w of %s", errTotal, c.cfg.Timeout))
	})
	defer total.Stop()

	header, err := requestHeader(req.Header, c.cfg.UserAgent)
	if err != nil {
		return nil, fail(err, nil)
	}
	at := target
	for ; ; hops++ {
		checked, err := c.reach.check(at)
		if err != nil {
			return nil, fail(err, nil)
		}
		over, err := c.resolve(via, checked)
		if err != nil {
			return nil, fail(err, nil)
		}
		secrets = append(secrets, secretsOf(nil, nil, false, over.Proxy)...)
		resp, body, p, err := c.hop(ctx, over, checked, header, req.First, hops > 0) //nolint:bodyclose // hop has read and closed it
		if err != nil {
			return nil, fail(err, p)
		}
		if readByProxy(checked, over) && loginRefused(resp.StatusCode, resp.Header) {
			return nil, fail(&proxyAnswer{http.StatusProxyAuthRequired}, p)
		}
		next, err := nextHop(at, resp.StatusCode, resp.Header, req.Keyed)
		if err != nil {
			return nil, fail(err, p)
		}
		if next == nil || c.cfg.MaxRedirects < 0 {
			return answer(resp, body, checked, hops, req.Label, started), nil
		}
		if hops >= c.cfg.MaxRedirects {
			return nil, fail(&redirectsError{c.cfg.MaxRedirects}, p)
		}
		if req.Follow != nil {
			if err := req.Follow(ctx, next); err != nil {
				return nil, fail(&followError{err}, p)
			}
		}
		header = headerFor(at, next, header)
		secrets = append(secrets, secretsOf(next, nil, false, nil)...)
		at = next
	}
}

// resolve says what carries a hop: of the environment, what that names for its URL.
func (c *Client) resolve(via Via, u *url.URL) (Via, error) {
	if !via.Environment {
		return via, nil
	}
	p, err := c.environment(u)
	if err != nil {
		return via, &policyError{"the environment names a proxy that cannot be read; http://host:port is one"}
	}
	via.Environment, via.Proxy = false, p
	if p == nil {
		via.ID = directID
	}
	return via, nil
}

func answer(resp *http.Response, body []byte, u *url.URL, hops int, label string, started time.Time) *Response {
	h := resp.Header
	h.Del("Content-Encoding")
	h.Del("Content-Length")
	final := *u
	final.User = nil
	return &Response{
		Status: resp.StatusCode, Header: h, Body: body, URL: &final,
		Redirects: hops, Label: label, Took: time.Since(started),
	}
}

// hop sends one request and reads its answer. It goes out a second time only
// where a kept connection had ended before anything was written to it; and
// where one that was led here by a redirect met a kept connection that brought
// not a byte: many a server closes behind a redirect without saying so, and
// would do it each time anew.
func (c *Client) hop(ctx context.Context, via Via, u *url.URL, h http.Header, first int64, led bool) (*http.Response, []byte, *progress, error) {
	tr, giveBack, err := c.pool.take(via)
	if err != nil {
		return nil, nil, nil, err
	}
	defer giveBack()
	for tries := 1; ; tries++ {
		// A new one each time: hooks of the last try may still be running.
		p := &progress{}
		resp, body, err := c.once(ctx, tr, u, h, first, p)
		again := p.again() || led && p.reused.Load() && !p.answered.Load() && classify(err, p) == KindReset
		if err == nil || ctx.Err() != nil || tries >= 4 || !again {
			return resp, body, p, err
		}
	}
}

func (c *Client) once(ctx context.Context, tr *transport, u *url.URL, h http.Header, first int64, p *progress) (*http.Response, []byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	headers := time.AfterFunc(c.cfg.HeaderTimeout, func() {
		cancel(fmt.Errorf("%w of %s", errHeaders, c.cfg.HeaderTimeout))
	})
	defer headers.Stop()

	sent := *u
	sent.User = nil
	r := (&http.Request{
		Method: http.MethodGet, URL: &sent, Host: sent.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: onceBody{},
	}).WithContext(httptrace.WithClientTrace(withOwner(ctx), p.trace()))
	if u.User != nil && h.Get("Authorization") == "" {
		pass, _ := u.User.Password()
		r.Header = h.Clone()
		r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+pass)))
	}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, nil, err
	}
	p.answered.Store(true)
	defer func() { _ = resp.Body.Close() }()
	if !headers.Stop() {
		return nil, nil, errHeaders
	}
	l := limits{max: c.cfg.MaxBody, first: first, idle: c.cfg.IdleBody, minRate: c.cfg.MinRate}
	if isRedirect(resp.StatusCode, resp.Header) {
		// Read only so that the connection can be kept.
		l.max, l.first = min(l.max, 64<<10), 0
		_, _ = readBody(ctx, resp, l, cancel)
		return resp, nil, nil
	}
	body, err := readBody(ctx, resp, l, cancel)
	return resp, body, err
}

// callerEnded is what a failure is called once the caller's context has ended.
func callerEnded(ctx context.Context) (Kind, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return KindCancelled, fmt.Errorf("the caller gave up: %w", ctx.Err())
	}
	return KindTimeout, fmt.Errorf("the caller's time is up: %w", ctx.Err())
}

// readByProxy says that a proxy reads the request and may answer it itself.
// Within a tunnel only the target speaks.
func readByProxy(u *url.URL, via Via) bool {
	return u.Scheme == "http" && via.Proxy != nil && (via.Proxy.Scheme == "http" || via.Proxy.Scheme == "https")
}

// loginRefused recognizes a proxy's own answer about its login. tinyproxy
// answers 407 where a login is missing, but 401 where it is wrong; on what it
// passes on it leaves the target's Server alone.
func loginRefused(status int, h http.Header) bool {
	return status == http.StatusProxyAuthRequired ||
		status == http.StatusUnauthorized && strings.HasPrefix(h.Get("Server"), "tinyproxy/")
}

func shown(u *url.URL) string {
	if u == nil {
		return "a URL"
	}
	return Redact(u)
}

// onceBody is an empty body that cannot be had twice. net/http sends a GET
// without a body again on its own when a kept connection breaks; the target
// may have counted the first by then.
type onceBody struct{}

func (onceBody) Read([]byte) (int, error) { return 0, io.EOF }
func (onceBody) Close() error             { return nil }
