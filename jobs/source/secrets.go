package source

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

const hidden = "[redacted]"

// shortestSecret is the length below which a text is in too many others.
const shortestSecret = 6

// secretName tells of a parameter's name that its value is one.
var secretName = regexp.MustCompile(`(?i)auth|cookie|key|passw|pwd|secret|session|sig|token|^app_?id$`)

// plainWords are in names of what is asked for, such as assignee=ada: they look
// like a secret's name, and their values stand in hosts, paths and messages.
var plainWords = regexp.MustCompile(`(?i)assign(?:ee|ed|ment)|authors?(?:$|[^a-z])|design|keywords?`)

func namesSecret(parameter string) bool {
	return secretName.MatchString(plainWords.ReplaceAllString(parameter, " "))
}

// secretsOf are the texts of a request that an answer must not show again: a
// target may echo its headers, and what it was asked for. The longest come
// first, since one may be a part of another.
func secretsOf(c Config) []string {
	var out []string
	add := func(v string) {
		if len(v) >= shortestSecret {
			out = append(out, v)
		}
	}
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
	for _, v := range c.Secrets {
		add(v)
		if plain, err := url.PathUnescape(v); err == nil { // as it stands in a URL
			add(plain)
		}
	}
	for name, v := range c.Params {
		if namesSecret(name) {
			add(v)
		}
	}
	if u, err := url.Parse(c.URL); err == nil {
		for name, values := range u.Query() {
			if namesSecret(name) {
				for _, v := range values {
					add(v)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(out)
}

// mostSpelled is how many characters of a secret are looked for in every spelling;
// of a longer one, such as a JWT, what follows them is taken out to its end.
const mostSpelled = 200

// spelled matches a secret as it is, as a URL, a page and JSON have it, and its
// beginning where a text was cut.
func spelled(secret string) *regexp.Regexp {
	all := []rune(secret)
	runes := all[:min(len(all), mostSpelled)]
	whole, begun, ends := "", "", ""
	for i, r := range runes {
		one := spellings(r)
		whole += one
		if i >= shortestSecret && i < len(runes)-1 {
			begun, ends = begun+"(?:"+one, ends+")?"
		} else {
			begun += one
		}
	}
	if len(all) > len(runes) {
		whole += `[^\s"'<>…]*`
	}
	return regexp.MustCompile(whole + "|" + begun + ends + `[%&\\#0-9A-Za-z]{0,12}…`)
}

// spellings matches one character. A letter and a digit is always itself.
func spellings(r rune) string {
	if r < 0x80 && letter(byte(r)) || r >= '0' && r <= '9' {
		return string(r)
	}
	raw, coded := regexp.QuoteMeta(string(r)), ""
	for _, c := range []byte(string(r)) {
		coded += fmt.Sprintf("%%%02x", c)
	}
	names := map[rune]string{'&': "|amp", '<': "|lt", '>': "|gt", '"': "|quot", '\'': "|apos", ' ': "|nbsp"}
	ways := []string{raw, `\\` + raw, "(?i:" + coded + ")", fmt.Sprintf(`\\u(?i:%04x)`, r), fmt.Sprintf(`(?:&|\\u0026)(?:#0*%d|#(?i:x0*%x)%s);`, r, r, names[r])}
	if r == ' ' {
		ways = append(ways, `\+`)
	}
	return "(?:" + strings.Join(ways, "|") + ")"
}

// hide takes secrets out of a text.
func hide(text string, secrets []string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, hidden)
		text = spelled(s).ReplaceAllStringFunc(text, func(m string) string {
			if strings.HasSuffix(m, "…") {
				return hidden + "…"
			}
			return hidden
		})
	}
	return text
}

// hide takes the secrets out of an error, in place.
func (e *AnswerError) hide(secrets []string) {
	e.Reason = hide(e.Reason, secrets)
	if e.Err != nil {
		before := e.Err.Error()
		if after := hide(before, secrets); after != before {
			e.Err = errors.New(after)
		}
	}
}

// Redact is the beginning of an answer's body without the secrets that the
// request carried, as much of it as an AnswerError keeps.
func (c Config) Redact(body []byte) []byte { return redacted(body, secretsOf(c)) }

func redacted(body []byte, secrets []string) []byte {
	longest := 0
	for _, s := range secrets {
		longest = max(longest, 6*len(s)) // written as \u0026 and its like
	}
	return []byte(hide(string(body[:min(len(body), mostKept+longest)]), secrets))
}

// plainHeaders carry no secret, whatever their value.
var plainHeaders = []string{"Accept", "Accept-Language", "Cache-Control", "From", "Pragma", "Referer", "User-Agent"}

func plainHeader(name string) bool {
	return slices.Contains(plainHeaders, http.CanonicalHeaderKey(name))
}
