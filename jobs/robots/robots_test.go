package robots

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// ExampleFile is that of RFC 9309, 5.1.
const rfcExample = `User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
`

func TestFilesByWhatTheyForbid(t *testing.T) {
	for _, tt := range []struct {
		name, file, token, path string
		allowed                 bool
		line                    int // of the rule that decided, 0 none
	}{
		{"RFC 5.1: gif for all", rfcExample, "other", "/a.gif", false, 2},
		{"RFC 5.1: gif that goes on", rfcExample, "other", "/a.gif?x", true, 0},
		{"RFC 5.1: example for all", rfcExample, "other", "/example/page.html", false, 3},
		{"RFC 5.1: publications", rfcExample, "other", "/publications/x", true, 4},
		{"RFC 5.1: foobot is kept out", rfcExample, "foobot", "/x", false, 7},
		{"RFC 5.1: foobot's page", rfcExample, "foobot", "/example/page.html", true, 8},
		{"RFC 5.1: foobot's gif", rfcExample, "foobot", "/example/allowed.gif", true, 9},
		{"RFC 5.1: barbot", rfcExample, "barbot", "/example/page.html", false, 13},
		{"RFC 5.1: bazbot shares barbot's group", rfcExample, "BazBot", "/example/page.html", false, 13},
		{"RFC 5.1: bazbot elsewhere, where all are kept out", rfcExample, "bazbot", "/example/other", true, 0},
		{"RFC 5.1: quxbot has a group without rules", rfcExample, "quxbot", "/example/", true, 0},

		{"RFC 5.2: the longest match", "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n", "foobot", "/example/page/disallowed.gif", false, 3},
		{"RFC 5.2: and the rest", "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n", "foobot", "/example/page/a", true, 2},
		{"RFC 2.2.1: groups of one name are one", "user-agent: ExampleBot\ndisallow: /foo\ndisallow: /bar\nuser-agent: ExampleBot\ndisallow: /baz\n", "examplebot", "/baz", false, 5},
		{"RFC 2.2.1: the first of them", "user-agent: ExampleBot\ndisallow: /foo\nuser-agent: ExampleBot\ndisallow: /baz\n", "examplebot", "/foo", false, 2},
		{"RFC 2.2.2: of two alike the one that allows", "user-agent: *\ndisallow: /page\nallow: /page\n", "x", "/page", true, 3},
		{"RFC 2.2.2: paths are case-sensitive", "user-agent: *\ndisallow: /Foo\n", "x", "/foo", true, 0},
		{"RFC 2.2.2: octets in the file, encoded in the URL", "user-agent: *\ndisallow: /foo/bar/ツ\n", "x", "/foo/bar/%E3%83%84", false, 2},
		{"RFC 2.2.2: encoded in the file", "user-agent: *\ndisallow: /foo/bar/%E3%83%84\n", "x", "/foo/bar/%e3%83%84", false, 2},
		{"RFC 2.2.2: encoded without need", "user-agent: *\ndisallow: /foo/bar/%62%61%7A\n", "x", "/foo/bar/baz", false, 2},
		{"octets that a URL cannot hold, as the file has them", "user-agent: *\ndisallow: /a{b}|\"<c>^`\\d\n", "x", "/a{b}|\"<c>^`\\d", false, 2},
		{"the same, encoded in the file", "user-agent: *\ndisallow: /a%7Bb%7d%7C\n", "x", "/a{b}|", false, 2},
		{"the same in a query", "user-agent: *\ndisallow: /*q=a%7Cb\n", "x", "/?q=a|b", false, 2},
		{"the same in a query, the other way round", "user-agent: *\ndisallow: /*q={x}\n", "x", "/?q=%7bx%7d", false, 2},
		{"RFC 2.2.2: a query counts", "user-agent: *\ndisallow: /foo/bar?baz=https://foo.bar\n", "x", "/foo/bar?baz=https://foo.bar", false, 2},
		{"RFC 2.2.3: $ in the middle is an octet", "user-agent: *\ndisallow: /a$b\n", "x", "/a$b/c", false, 2},
		{"RFC 2.2.3: $ at the end", "user-agent: *\nallow: /this/path/exactly$\ndisallow: /\n", "x", "/this/path/exactly", true, 2},
		{"RFC 2.2.3: $ at the end, more", "user-agent: *\nallow: /this/path/exactly$\ndisallow: /\n", "x", "/this/path/exactly/not", false, 3},
		{"RFC 2.2.3: * within", "user-agent: *\nallow: /this/*/exactly\ndisallow: /\n", "x", "/this/is/it/exactly", true, 2},
		{"RFC 2.2.3: an encoded star is an octet", "user-agent: *\ndisallow: /path/file-with-a-%2A.html\n", "x", "/path/file-with-a-*.html", false, 2},
		{"RFC 2.2.3: and no star", "user-agent: *\ndisallow: /path/file-with-a-%2A.html\n", "x", "/path/file-with-a-b.html", true, 0},
		{"RFC 2.2.3: an encoded dollar", "user-agent: *\ndisallow: /path/foo-%24\n", "x", "/path/foo-$", false, 2},
		{"RFC 2.2.2: robots.txt itself", "user-agent: *\ndisallow: /\n", "x", "/robots.txt", true, 0},
		{"RFC 2.2.4: other lines part no group", "user-agent: a\nSitemap: https://h/s.xml\nuser-agent: b\ndisallow: /\n", "a", "/x", false, 4},

		{"a bad Crawl-delay does not void the rest", "user-agent: *\nCrawl-delay: soon\ndisallow: /x\nCrawl-delay: -3\nCrawl-delay: 1e999\n", "x", "/x", false, 3},
		{"a colon is missing", "user-agent: *\ndisallow /y\ndisallow: /x\n", "x", "/y", true, 0},
		{"a version after the name", "User-agent: foobot/2.1\nDisallow: /\n", "foobot", "/", false, 2},
		{"a name that only begins alike", "User-agent: foobot-news\nDisallow: /\n", "foobot", "/", true, 0},
		{"a name that is longer than ours", "User-agent: foo\nDisallow: /\n", "foobot", "/", true, 0},
		{"an empty disallow", "User-agent: *\nDisallow:\n", "x", "/", true, 0},
		{"an empty disallow ends the names", "User-agent: a\nDisallow:\nUser-agent: *\nDisallow: /\n", "a", "/", true, 0},
		{"rules before any name", "Disallow: /\nUser-agent: b\nDisallow: /b\n", "x", "/", true, 0},
		{"BOM, CR alone, comments, tabs", "\xef\xbb\xbfUSER-AGENT:\t* # all\rDISALLOW : /x\t# no\r", "x", "/x", false, 2},
		{"CRLF", "User-agent: *\r\n\r\nDisallow: /x\r\n", "x", "/x", false, 3},
		{"a page in place of a file", "<!DOCTYPE html>\n<html><body style=\"a:b\">Not found</body></html>", "x", "/x", true, 0},
		{"no file", "", "x", "/x", true, 0},
		{"a pattern without a slash", "User-agent: *\nDisallow: x\n", "x", "/x", true, 0},
		{"stars in a row", "User-agent: *\nDisallow: /a***b$\n", "x", "/a/c/b", false, 2},
		{"star and end", "User-agent: *\nDisallow: /*$\n", "x", "/anything", false, 2},
		{"what a star took is not used again", "User-agent: *\nDisallow: /ab*ba$\n", "x", "/aba", true, 0},
		{"no name of ours", "User-agent: a\nDisallow: /a\nUser-agent: *\nDisallow: /\n", "", "/a", false, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := url.Parse("https://example.org" + tt.path)
			if err != nil {
				t.Fatal(err)
			}
			v := Parse([]byte(tt.file), tt.token).Check(u)
			if v.Allowed != tt.allowed || v.Rule.Line != tt.line {
				t.Errorf("allowed %v by line %d (%s), want %v by line %d", v.Allowed, v.Rule.Line, v.Rule, tt.allowed, tt.line)
			}
		})
	}
}

func TestOnlyTheFirst500KiBCountAndNoTornLine(t *testing.T) {
	head := "User-agent: *\nDisallow: /early\n"
	line := "Disallow: /torn-apart\n"
	pad := strings.Repeat("#", MaxBytes-len(head)-len(line)/2-1) + "\n"
	r := Parse([]byte(head+pad+line+"Disallow: /late\n"), "x")
	if len(r.Rules) != 1 || r.Rules[0].Pattern != "/early" {
		t.Errorf("rules %v", r.Rules)
	}
}

func TestCrawlDelay(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"2": 2 * time.Second, "0.5": 500 * time.Millisecond, "0": 0, "86400": MaxDelay, "1e300": MaxDelay,
		"-1": 0, "soon": 0, "NaN": 0, "Inf": 0, "": 0, "5s": 0,
	} {
		if got := Parse([]byte("User-agent: *\nCrawl-delay: "+value+"\nDisallow: /x\n"), "x"); got.Delay != want || len(got.Rules) != 1 {
			t.Errorf("%q: %s, %d rules, want %s", value, got.Delay, len(got.Rules), want)
		}
	}
	two := Parse([]byte("User-agent: *\nCrawl-delay: 9\nUser-agent: me\nCrawl-delay: 3\nDisallow: /\n"), "me")
	if two.Delay != 9*time.Second && two.Delay != 3*time.Second {
		t.Errorf("delay %s", two.Delay)
	}
}

func TestProductToken(t *testing.T) {
	for ua, want := range map[string]string{
		"example-feeds/1.0 (+https://example.org/contact)": "example-feeds",
		"feeds":                      "feeds",
		"Feed_Bot2 (me@example.org)": "Feed_Bot2",
		"Mozilla/5.0 (compatible; feeds/1.0; +https://example.org/feeds)": "feeds",
		"Mozilla/5.0 (X11; Linux)":                                        "Mozilla",
		"":                                                                "",
		"(nothing)":                                                       "",
	} {
		if got := Token(ua); got != want {
			t.Errorf("%q: %q, want %q", ua, got, want)
		}
	}
}

func TestWhatAnAnswerMeans(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	forbids := []byte("User-agent: *\nDisallow: /\n")
	for _, tt := range []struct {
		name     string
		answer   Answer
		failures int // before
		allowed  bool
		holds    time.Duration
	}{
		{"200", Answer{Status: 200, Body: forbids}, 0, false, 24 * time.Hour},
		{"200 after failures", Answer{Status: 200}, 7, true, 24 * time.Hour},
		{"redirects without end", Answer{Status: 302}, 0, true, 24 * time.Hour},
		{"404", Answer{Status: 404, Body: forbids}, 0, true, 24 * time.Hour},
		{"401", Answer{Status: 401}, 0, true, 24 * time.Hour},
		{"403", Answer{Status: 403}, 0, true, 24 * time.Hour},
		{"410", Answer{Status: 410}, 0, true, 24 * time.Hour},
		{"429", Answer{Status: 429}, 0, false, time.Minute},
		{"500", Answer{Status: 500}, 0, false, time.Minute},
		{"503 with Retry-After", Answer{Status: 503, RetryAfter: 10 * time.Minute}, 0, false, 10 * time.Minute},
		{"503 with a very long Retry-After", Answer{Status: 503, RetryAfter: 24 * time.Hour}, 0, false, time.Hour},
		{"time-out", Answer{Why: "timeout"}, 0, false, time.Minute},
		{"time-out, the third", Answer{Why: "timeout"}, 2, false, 4 * time.Minute},
		{"time-out, the hundredth", Answer{Why: "timeout"}, 99, false, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := Judge(tt.answer, "me", Kept{Failures: tt.failures}, now)
			u := &url.URL{Scheme: "https", Host: "Example.org:443", Path: "/page"}
			err := k.Check(u)
			if (err == nil) != tt.allowed || k.Until.Sub(now) != tt.holds {
				t.Errorf("%v for %s, want allowed %v for %s", err, k.Until.Sub(now), tt.allowed, tt.holds)
			}
			if err != nil && !strings.Contains(err.Error(), "https://example.org/robots.txt") {
				t.Errorf("does not say whose: %v", err)
			}
		})
	}
}

func TestAMatchTakesNoLongTime(t *testing.T) {
	// Backtracking would need more steps than there is time for.
	pattern, path := "/"+strings.Repeat("*a", 4000)+"b$", "/"+strings.Repeat("a", 8000)
	if match(normalize(pattern, true), path) {
		t.Error("it does not match")
	}
}
