package probe

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"feedwarden/allocation"
	"feedwarden/jobs"
	"feedwarden/jobs/fetch"
)

// Checker checks endpoints. It is safe for concurrent use.
type Checker struct {
	cfg    Config
	judge  judge
	noWay  error // why there is no judge
	client *fetch.Client
}

// NewChecker makes a checker; it does no I/O. That it has no judge is the answer
// of its calls.
func NewChecker(cfg Config) *Checker {
	c := &Checker{cfg: cfg.withDefaults()}
	if c.judge, c.noWay = readJudge(cfg.Judge); c.noWay != nil {
		return c
	}
	c.client = fetch.New(fetch.Config{
		UserAgent: c.cfg.UserAgent, Timeout: c.cfg.Timeout, HeaderTimeout: c.cfg.Timeout, DialTimeout: c.cfg.Timeout,
		MaxBody: 64 << 10, MaxRedirects: -1, MaxTransports: c.cfg.Parallel, RootCAs: c.cfg.RootCAs,
		// The judge is the operator's own, and nothing but it is asked.
		AllowPrivate: true, AllowHosts: []string{c.judge.Hostname()},
	})
	return c
}

// Close drops kept connections.
func (c *Checker) Close() {
	if c.client != nil {
		c.client.Close()
	}
}

// Direct asks the judge without a proxy: it answers, and this is how we look to
// it. The error wraps ErrJudgeAway, or ErrNoJudge.
func (c *Checker) Direct(ctx context.Context) (Answer, error) {
	if c.noWay != nil {
		return Answer{}, c.noWay
	}
	nonce := newNonce()
	resp, err := c.ask(ctx, fetch.Via{}, c.judge.ask(nonce, false))
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrJudgeAway, err)
	}
	a, ok := read(resp, nonce)
	if !ok {
		return Answer{}, fmt.Errorf("%w: %s answers with status %d, and not as a judge", ErrJudgeAway, fetch.Redact(c.judge.URL), resp.Status)
	}
	return a, nil
}

// Probe checks one endpoint. direct is what Direct gave. An error says nothing
// of the endpoint: the context ended, or its URL cannot be used.
func (c *Checker) Probe(ctx context.Context, e allocation.Allocation, direct Answer) (allocation.Verdict, error) {
	if c.noWay != nil {
		return allocation.Verdict{}, c.noWay
	}
	limited, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	v, err := c.probe(limited, fetch.Via{ID: e.ID, Proxy: e.URL, PublicOnly: e.PublicOnly}, direct)
	if ctx.Err() != nil {
		return allocation.Verdict{}, ctx.Err()
	}
	return v, err
}

func (c *Checker) probe(ctx context.Context, via fetch.Via, direct Answer) (allocation.Verdict, error) {
	nonce := newNonce()
	v := allocation.Verdict{OK: true}
	var notes []string
	done := func() (allocation.Verdict, error) {
		v.Detail = strings.Join(notes, "; ")
		return v, nil
	}
	resp, err := c.ask(ctx, via, c.judge.ask(nonce, false))
	switch {
	case isKind(err, fetch.KindTooLarge):
		v.Alters, notes = true, append(notes, "it answers with something of its own")
		return done()
	case err != nil:
		return failure(err)
	case resp.Status >= http.StatusBadRequest:
		// The judge has just answered us directly, so this is the endpoint's word.
		return allocation.Verdict{Kind: allocation.Unreachable, Detail: fmt.Sprintf("it does not reach the judge: it answers %d", resp.Status)}, nil
	}
	v.Latency = resp.Took
	a, ok := read(resp, nonce)
	if !ok {
		v.Alters, notes = true, append(notes, "it answers with something of its own")
		return done()
	}
	v.Exit = exit(a, direct)
	if what := revealed(a, direct); what != "" {
		v.Reveals, notes = true, append(notes, what)
	}
	page, err := c.ask(ctx, via, c.judge.ask(nonce, true))
	if isKind(err, fetch.KindReset) {
		// Some close a connection after each answer without a word; this one is new.
		page, err = c.ask(ctx, via, c.judge.ask(nonce, true))
	}
	switch {
	case err != nil && !isKind(err, fetch.KindTooLarge):
		return failure(err)
	case err != nil || !bytes.Equal(page.Body, Page(nonce)):
		v.Alters, notes = true, append(notes, "it alters pages")
	}
	if v.HTTPS = c.judge.Scheme == "https" || via.Proxy == nil || strings.HasPrefix(via.Proxy.Scheme, "socks5"); !v.HTTPS {
		err := c.tunnel(ctx, via.Proxy, nonce)
		if v.HTTPS = err == nil; err != nil {
			notes = append(notes, "no tunnel: "+err.Error())
		}
	}
	return done()
}

// failure is the verdict on an endpoint that brought nothing. A rule of ours
// that refused the request is no verdict.
func failure(err error) (allocation.Verdict, error) {
	var fe *fetch.Error
	if !errors.As(err, &fe) {
		return allocation.Verdict{}, err
	}
	kind := jobs.HealthOf(fe.Kind)
	if kind == allocation.OK || kind == allocation.Cancelled {
		return allocation.Verdict{}, err
	}
	return allocation.Verdict{Kind: kind, Detail: fe.Err.Error()}, nil
}

func isKind(err error, k fetch.Kind) bool {
	var fe *fetch.Error
	return errors.As(err, &fe) && fe.Kind == k
}

// ask fetches, and asks again a judge that is busy, as long as there is time.
func (c *Checker) ask(ctx context.Context, via fetch.Via, url string) (*fetch.Response, error) {
	for {
		resp, err := c.client.Do(ctx, fetch.Request{URL: url}, via)
		if err != nil || resp.Status != http.StatusTooManyRequests {
			return resp, err
		}
		after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil {
			after = 1
		}
		pause := time.NewTimer(time.Duration(min(max(after, 1), 5)) * time.Second)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return resp, nil
		}
	}
}

// read is a judge's answer to a nonce.
func read(resp *fetch.Response, nonce string) (Answer, bool) {
	var a Answer
	if resp.Status != http.StatusOK || json.Unmarshal(resp.Body, &a) != nil {
		return Answer{}, false
	}
	return a, a.Nonce == nonce
}

func newNonce() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
