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
		e.Keep(w.redacted(resp.Body), resp.Header.Get("Content-Type"))
	}
	return a, err
}

// redacted is the beginning of a body without the request's secrets, which a
// target may echo.
func (w *watched) redacted(body []byte) []byte {
	longest := 0
	for _, s := range w.secrets {
		longest = max(longest, len(s))
	}
	text := string(body[:min(len(body), mostKept+longest)])
	for _, s := range w.secrets {
		text = strings.ReplaceAll(text, s, "[redacted]")
	}
	return []byte(text)
}

// secretsOf are the texts of a request that an answer must not show again.
func secretsOf(c Config) []string {
	var out []string
	if c.Key != "" {
		out = append(out, c.Key)
	}
	for name, v := range c.Headers {
		if !plainHeader(name) {
			for _, word := range strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(" ,;=\t", r) }) {
				if len(word) >= 8 {
					out = append(out, word)
				}
			}
		}
	}
	// The longest first: one may be a part of another.
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}
