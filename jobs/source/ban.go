package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"feedwarden/jobs/fetch"
)

// BanSigns tell a target's ban page from an answer. One sign is enough.
type BanSigns struct {
	CSS    string // a selector that matches only there
	Text   string // a text that stands only there, in any case
	Status []int  // statuses that mean it
}

// banText is how much of an answer is searched for a ban's text.
const banText = 1 << 20

type banRule struct {
	css    *css
	shown  string
	text   string // lower case
	status []int
}

func newBanRule(b *BanSigns) (*banRule, error) {
	if b == nil {
		return nil, nil
	}
	var errs []error
	r := &banRule{shown: clip(b.CSS), text: strings.ToLower(strings.TrimSpace(b.Text)), status: b.Status}
	if b.CSS != "" {
		sel, err := selector("ban.css", b.CSS)
		if err != nil {
			errs = append(errs, err)
		}
		r.css = sel
	}
	for _, s := range b.Status {
		if s < 200 || s > 599 {
			errs = append(errs, fmt.Errorf("ban.status %d is none; it should be 200 to 599", s))
		}
	}
	if b.CSS == "" && r.text == "" && len(b.Status) == 0 {
		errs = append(errs, errors.New("ban names no sign; it should have css, text or status"))
	}
	return r, errors.Join(errs...)
}

// sign is the sign of a ban that an answer shows, or "".
func (r *banRule) sign(resp *fetch.Response) string {
	if r == nil {
		return ""
	}
	if slices.Contains(r.status, resp.Status) {
		return fmt.Sprintf("status %d", resp.Status)
	}
	if r.text == "" && r.css == nil {
		return ""
	}
	text, _ := decodeHTML(resp.Body, resp.Header.Get("Content-Type"))
	if r.text != "" && strings.Contains(strings.ToLower(text[:min(len(text), banText)]), r.text) {
		return fmt.Sprintf("%q stands in it", clip(r.text))
	}
	if r.css != nil && strings.Contains(text, "<") {
		if doc, failure := parseHTML(text); failure == nil && newMatching(doc.Get(0), pageTime).first(r.css, doc.Get(0)) != nil {
			return fmt.Sprintf("%q matches", r.shown)
		}
	}
	return ""
}

// watched is a source whose answers are looked at for the signs of a ban first,
// and whose errors keep what came.
type watched struct {
	Source
	ban     *banRule
	secrets []string
	now     func() time.Time
}

// Request says to the fetch too what nothing may show.
func (w *watched) Request(p Page) (fetch.Request, error) {
	req, err := w.Source.Request(p)
	if len(w.secrets) > 0 {
		req.Hide = func(text string) string { return hide(text, w.secrets) }
	}
	return req, err
}

func (w *watched) Read(resp *fetch.Response) (Answer, error) {
	var (
		a   Answer
		err error
	)
	if sign := w.ban.sign(resp); sign != "" {
		e := &AnswerError{Kind: Ban, Reason: "a ban page: " + sign}
		e.RetryAfter, _ = fetch.RetryAfter(resp.Header, w.now())
		err = e
	} else {
		a, err = w.Source.Read(resp)
	}
	var e *AnswerError
	if errors.As(err, &e) {
		e.hide(w.secrets)
		e.Keep(redacted(resp.Body, w.secrets), resp.Header.Get("Content-Type"))
	}
	return a, err
}
