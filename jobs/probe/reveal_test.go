package probe

import (
	"net/http"
	"strings"
	"testing"
)

func TestWhatRevealsTheCaller(t *testing.T) {
	t.Parallel()
	direct := Answer{Peer: "203.0.113.7", Headers: map[string][]string{"User-Agent": {"x/1"}}}
	for name, c := range map[string]struct {
		headers map[string][]string
		reveals bool
	}{
		"nothing":                        {map[string][]string{"User-Agent": {"x/1"}}, false},
		"a Via names the proxy":          {map[string][]string{"Via": {"1.1 tinyproxy (tinyproxy/1.11)"}}, false},
		"a Via with our address":         {map[string][]string{"Via": {"1.1 203.0.113.7"}}, true},
		"X-Forwarded-For":                {map[string][]string{"X-Forwarded-For": {"203.0.113.7"}}, true},
		"an inner address of ours":       {map[string][]string{"X-Forwarded-For": {"192.168.3.4"}}, true},
		"Forwarded, with a port":         {map[string][]string{"Forwarded": {`for="203.0.113.7:4711";proto=http`}}, true},
		"a header of any name":           {map[string][]string{"X-Whatever": {"a=203.0.113.7"}}, true},
		"an address that has ours in it": {map[string][]string{"X-Whatever": {"203.0.113.70"}}, false},
		"X-Forwarded-For: unknown":       {map[string][]string{"X-Forwarded-For": {"unknown"}}, false},
		"the proxy's own address":        {map[string][]string{"X-Forwarded-For": {"198.51.100.1"}}, false},
		"our login":                      {map[string][]string{"Proxy-Authorization": {Hidden}}, true},
	} {
		a := Answer{Peer: "198.51.100.1", Headers: c.headers}
		if got := revealed(a, direct); (got != "") != c.reveals {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A judge behind a proxy of its own sees that one, and its headers say the rest.
func TestAJudgeBehindAProxyOfItsOwn(t *testing.T) {
	t.Parallel()
	front := func(before ...string) Answer {
		return Answer{Peer: "10.0.0.2", Headers: map[string][]string{"X-Forwarded-For": {strings.Join(before, ", ")}, "X-Forwarded-Server": {"10.0.0.2"}}}
	}
	direct := front("203.0.113.7")
	if got := exit(front("198.51.100.1"), direct); got != addr("198.51.100.1") {
		t.Errorf("exit %s", got)
	}
	if got := revealed(front("198.51.100.1"), direct); got != "" {
		t.Errorf("an anonymous one: %s", got)
	}
	a := front("203.0.113.7", "198.51.100.1")
	if got := exit(a, direct); got != addr("198.51.100.1") {
		t.Errorf("exit %s", got)
	}
	if revealed(a, direct) == "" {
		t.Error("a transparent one reveals nothing")
	}
}

func TestShownIsBoundedAndHidesSecrets(t *testing.T) {
	t.Parallel()
	h := http.Header{"Cookie": {"session=s3cret"}, "Authorization": {"Bearer s3cret"}, "Proxy-Authorization": {"Basic s3cret"}, "X-Long": {strings.Repeat("ä", 5000)}}
	for i := range 200 {
		h[strings.Repeat("Y", i+1)] = []string{"v", "v", "v", "v", "v", "v", "v"}
	}
	got := Shown(h)
	size := 0
	for name, values := range got {
		size += len(name)
		for _, v := range values {
			size += len(v)
			if strings.Contains(v, "s3cret") {
				t.Errorf("%s is said back", name)
			}
		}
	}
	if got["Cookie"][0] != Hidden || len(got) > mostHeaders || size > mostHeaders*(mostName+mostValues*mostValue) {
		t.Errorf("%d headers of %d bytes", len(got), size)
	}
}
