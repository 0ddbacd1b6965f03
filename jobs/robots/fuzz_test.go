package robots

import (
	"net/url"
	"strings"
	"testing"
)

// Whatever a file holds it is read; a rule that decides is one of its lines;
// and a group for us put behind it decides for us.
func FuzzParse(f *testing.F) {
	f.Add(rfcExample, "/example/a.gif")
	f.Add("user-agent:*\rdisallow:/%zz*$\r\n", "/%zz?$")
	f.Add("\xef\xbb\xbfuser-agent: me\ncrawl-delay: 1e309\nallow: *", "//")
	f.Fuzz(func(t *testing.T, file, path string) {
		u, err := url.Parse("http://h/" + path)
		if err != nil {
			return
		}
		r := Parse([]byte(file), "me")
		lines := 1 + strings.Count(file, "\n") + strings.Count(file, "\r")
		for _, rule := range r.Rules {
			if rule.Line < 1 || rule.Line > lines {
				t.Fatalf("line %d of %d", rule.Line, lines)
			}
		}
		if r.Delay < 0 || r.Delay > MaxDelay {
			t.Fatalf("delay %s", r.Delay)
		}
		v := r.Check(u)
		if v.Rule.Line == 0 && !v.Allowed || v.Rule.Line > 0 && !match(v.Rule.Pattern, normalize(pathOf(u), false)) {
			t.Fatalf("%+v", v)
		}
		if strings.ContainsAny(file, "\r\n") && !strings.HasSuffix(file, "\n") || len(file) > MaxBytes/2 {
			return
		}
		// A rule of exactly this path is the longest that can match without stars.
		exact := normalize(pathOf(u), false)
		if exact == "/robots.txt" || strings.HasSuffix(exact, "$") {
			return
		}
		more := Parse([]byte(file+"\nallow:\nuser-agent: me\ndisallow: "+exact+"*"+"\n"), "me")
		if w := more.Check(u); w.Allowed && w.Rule.Line == 0 {
			t.Fatalf("%q is not forbidden by itself", exact)
		}
	})
}
