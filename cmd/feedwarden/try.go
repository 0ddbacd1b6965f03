package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/config"
	"feedwarden/jobs"
	"feedwarden/jobs/fetch"
)

type tryCmd struct {
	Feed   string            `arg:"" help:"The feed."`
	Params map[string]string `name:"param" short:"p" help:"Override a parameter of the feed's source." placeholder:"k=v" mapsep:"none"`
}

func (c *tryCmd) Help() string {
	return `The fetch takes the road of a job: running limits, robots.txt where the source is a page, units of the feed's quota, the host's turn, an endpoint of its pool. It is charged as a job's is, since the target counts it; what never leaves is not. Nothing of what comes is stored, and only the first page is fetched. It needs no worker.

Exit 0: read. 1: it failed, and the page says what would follow for a job. 75: refused for now, by a quota, a limit, the pool, or the target; --json says retry_after_ms.

Of a URL's query and of headers only those values are shown that are known to be no secret.`
}

func (c *tryCmd) Run(e *env) error {
	file, err := e.load()
	if err != nil {
		return err
	}
	open := c.open(file)
	return e.with(func(s *session) error {
		f, err := s.jobs.Feed(c.Feed)
		if err != nil {
			return err
		}
		log := quieter(e.log)
		if err := ownList(s, f.Pool); err != nil {
			return err
		}
		catalog, err := jobs.NewCatalog(s.settings.jobs.Feeds)
		if err != nil {
			return err
		}
		client := fetch.New(s.settings.fetch)
		defer client.Close()
		t, err := jobs.NewTrier(s.settings.jobs, catalog, s.rdb, s.quotas, s.leases, s.pools, client, log).Try(s.ctx, c.Feed, c.Params, open)
		if err != nil {
			return err
		}
		if e.json {
			err = e.line(t)
		} else {
			err = newTryPage(e, f, t).print()
		}
		switch {
		case err != nil:
			return err
		case t.OK:
			return nil
		case t.RetryAfterMS > 0:
			return &exitError{exitRefused, fmt.Errorf("refused for now: %s", oneLine(t.Failure.Reason))}
		}
		return &exitError{exitFailed, errors.New(oneLine(t.Failure.Reason))}
	})
}

// open says of which parameters the values are no secret: those that the file
// has in plain words, those of the command line, and those that are the API's own.
func (c *tryCmd) open(file *config.File) func(string) bool {
	plain := map[string]bool{"part": true, "maxResults": true}
	for _, f := range file.Feeds {
		if f.Name != c.Feed {
			continue
		}
		for name, v := range f.Params {
			plain[name] = v.String() == v.Reveal()
		}
	}
	for name := range c.Params {
		plain[name] = true
	}
	return func(name string) bool { return plain[name] }
}

// ownList has the pool follow its list, as a worker does when it starts.
func ownList(s *session, pool string) error {
	l := newLists(s.settings)
	path, ok := l.files()[pool]
	if !ok {
		return nil
	}
	i := &importer{pools: s.pools, lists: l, log: quieter(s.log)}
	err := i.follow(s.ctx, pool, path)
	var missing *os.PathError
	var empty *allocation.EmptyListError
	switch {
	case errors.As(err, &missing):
		return usageError("pool %s: its list: %w", pool, err)
	case errors.As(err, &empty):
		return nil // what the pool has holds
	}
	return err
}

// tryPage lays a trial out for a person.
type tryPage struct {
	e    *env
	feed jobs.Feed
	t    jobs.Trial
	b    strings.Builder
}

func newTryPage(e *env, f jobs.Feed, t jobs.Trial) *tryPage { return &tryPage{e: e, feed: f, t: t} }

const tryIndent = 11

// part writes lines under a name.
func (p *tryPage) part(name, paint string, lines ...string) {
	var wrapped []string
	for _, line := range lines {
		wrapped = append(wrapped, folded(oneLine(line), p.e.width-tryIndent)...)
	}
	for i, line := range wrapped {
		label := ""
		if i == 0 {
			label = name
		}
		if paint != "" && i == 0 {
			line = p.paint(paint, line)
		}
		fmt.Fprintf(&p.b, "%s%s\n", p.paint(bold, fmt.Sprintf("%-*s", tryIndent, label)), line)
	}
}

func (p *tryPage) paint(code, s string) string {
	if !p.e.colour || strings.TrimSpace(s) == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *tryPage) print() error {
	t := p.t
	quota := "no quota"
	if p.feed.Quota != "" {
		quota = fmt.Sprintf("quota %s, %s a request", p.feed.Quota, count(int(p.feed.Cost), "unit"))
	}
	p.part("feed", "", fmt.Sprintf("%s · source %s · pool %s · %s", t.Feed, p.feed.Source.Kind, p.feed.Pool, quota))
	p.robots()
	sent, verb := []string{t.Request.Method + " " + t.Request.URL}, "sent"
	if !t.Sent {
		verb = "not sent"
	}
	p.part(verb, "", append(sent, headerLines(t.Request.Header)...)...)
	if t.Via != nil {
		over := t.Via.Endpoint
		switch {
		case t.Via.URL == t.Via.Endpoint && t.Via.URL != "":
			over += " of pool " + t.Via.Pool
		case t.Via.URL != "":
			over = fmt.Sprintf("%s of pool %s (%s)", t.Via.URL, t.Via.Pool, t.Via.Endpoint)
		case over == jobs.Direct:
			over = "no proxy"
		case over == jobs.Environment:
			over = "what HTTP_PROXY, HTTPS_PROXY and NO_PROXY say"
		}
		p.part("through", "", over)
	}
	p.answer()
	p.read()
	p.cost()
	p.failure()
	if t.OK {
		p.part("stored", dim, "nothing; feedwarden enqueue "+t.Feed+" fetches and keeps it")
	}
	if _, err := fmt.Fprint(p.e.out, p.b.String()); err != nil {
		return err
	}
	return p.items()
}

func (p *tryPage) robots() {
	r := p.t.Robots
	if r == nil {
		return
	}
	what, paint := "allows this page", green
	switch {
	case r.Status == 0 || r.Says != "" && r.Agent == "" && !r.Allowed:
		what, paint = "is not known: "+r.Says, yellow
	case !r.Allowed:
		what, paint = fmt.Sprintf("forbids this page, for %s, %s", r.Agent, r.Says), red
	case r.Status >= 300:
		what = fmt.Sprintf("is not there (%d): all is allowed", r.Status)
	case r.Says != "":
		what += fmt.Sprintf(", for %s, %s", r.Agent, r.Says)
	case r.Rules > 0:
		what += fmt.Sprintf(": %s for %s, none matches", count(r.Rules, "rule"), r.Agent)
	}
	known := "asked just now"
	if !r.Asked {
		known = "known"
	}
	lines := []string{what, fmt.Sprintf("%s, %s; holds until %s", r.URL, known, instant(&r.Until, time.Now()))}
	if r.DelayMS > 0 {
		lines = append(lines, fmt.Sprintf("Crawl-delay: one request in %s", span(time.Duration(r.DelayMS)*time.Millisecond)))
	}
	p.part("robots", paint, lines...)
}

func (p *tryPage) answer() {
	a := p.t.Answer
	if a == nil {
		return
	}
	paint := green
	if a.Status >= 300 {
		paint = red
	}
	kind := a.Type
	if kind == "" {
		kind = "no type"
	}
	size := "no bytes"
	if a.Bytes > 0 {
		size = count(a.Bytes, "byte")
	}
	lines := []string{fmt.Sprintf("%s in %s · %s · %s", strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status))),
		span(time.Duration(a.TookMS)*time.Millisecond), size, kind)}
	if a.Redirects > 0 {
		lines = append(lines, fmt.Sprintf("after %s, from %s", count(a.Redirects, "redirect"), a.URL))
	}
	p.part("answered", paint, append(lines, headerLines(a.Header)...)...)
}

func headerLines(header []jobs.TrialHeader) []string {
	var out, hidden []string
	for _, h := range header {
		if h.Hidden > 0 {
			hidden = append(hidden, h.Name)
			continue
		}
		out = append(out, h.Name+": "+h.Value)
	}
	if len(hidden) > 0 {
		out = append(out, "and, with values hidden: "+strings.Join(hidden, ", "))
	}
	return out
}

func (p *tryPage) read() {
	r := p.t.Read
	if r == nil {
		return
	}
	lines := []string{count(r.Items, "item")}
	if r.Next {
		lines[0] += ", and a further page follows"
	} else {
		lines[0] += ", no further page"
	}
	paint := green
	if r.Items == 0 {
		paint = yellow
	}
	if r.Lossy {
		lines = append(lines, "some bytes could not be decoded, and were replaced (lossy)")
	}
	if r.Capped {
		lines = append(lines, "there were more items than are read of one page")
	}
	if r.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("%d left out: nothing to know them by", r.Dropped))
	}
	p.part("read", paint, lines...)
}

func (p *tryPage) cost() {
	c := p.t.Cost
	text := count(c.Requests, "request")
	switch {
	case c.Quota == "":
		text += ", charged to no quota"
	case c.Units > 0:
		text += fmt.Sprintf(", %s of quota %s", count(int(c.Units), "unit"), c.Quota)
	default:
		text += fmt.Sprintf(", nothing of quota %s", c.Quota)
	}
	p.part("cost", "", text)
}

func (p *tryPage) failure() {
	f := p.t.Failure
	if f == nil {
		return
	}
	paint, name := red, "failed"
	if p.t.RetryAfterMS > 0 {
		paint, name = yellow, "refused"
	}
	p.part(name, paint, f.Reason)
	if p.t.RetryAfterMS > 0 {
		p.part("", "", "again in "+span(time.Duration(p.t.RetryAfterMS)*time.Millisecond))
	}
	if w := f.Follows; w != nil {
		plain := strings.NewReplacer("`", "")
		p.part("kind", "", w.Kind+": "+plain.Replace(w.Means))
		p.part("so", "", "a job: "+w.Job)
		if p.t.Via != nil && p.t.Via.URL != "" {
			p.part("", "", "the endpoint: "+plain.Replace(w.Endpoint))
		}
	}
	if f.Closed != "" {
		p.part("closed", "", f.Closed+", for everybody, until then")
	}
}

func (p *tryPage) items() error {
	r := p.t.Read
	if r == nil || r.Items == 0 {
		return nil
	}
	fmt.Fprintln(p.e.out)
	t := p.e.table("", "RANK", "PUBLISHED", "TITLE", "URL", "ID")
	for _, it := range r.First {
		if err := t.add(it, fmt.Sprint(it.Rank), instant(it.Published, time.Now()), orDash(clip(oneLine(it.Title), 40)), orDash(it.URL), clip(oneLine(it.ID), 40)); err != nil {
			return err
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	if more := r.Items - len(r.First); more > 0 {
		fmt.Fprintf(p.e.out, "and %d more\n", more)
	}
	return nil
}
