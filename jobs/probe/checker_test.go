package probe

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/faultkit"
	"feedwarden/internal/testredis"
)

const canary = "canary-password-4711"

// What a check says of each fault, for each kind of proxy, by an http and by an
// https judge; and that no word of it holds the password.
func TestEachFaultHasItsVerdict(t *testing.T) {
	t.Parallel()
	ca := authority(t)
	j := judgeAt(t, ca, nil)
	type want struct {
		kind                   allocation.Outcome // "": it is OK
		https, alters, reveals bool
	}
	good := want{https: true}
	failed := func(k allocation.Outcome) want { return want{kind: k} }
	// Keys are "proxy judge", "judge", or "" for all others.
	for fault, wants := range map[faultkit.Fault]map[string]want{
		faultkit.NoFault:   {"": good},
		faultkit.Gone:      {"": failed(allocation.Connect)},
		faultkit.Drop:      {"": failed(allocation.Reset)},
		faultkit.Hang:      {"": failed(allocation.Timeout)},
		faultkit.Mute:      {"": failed(allocation.Timeout)},
		faultkit.Drip:      {"": failed(allocation.Timeout)},
		faultkit.Auth:      {"": failed(allocation.ProxyAuth)},
		faultkit.Refuse:    {"": failed(allocation.Unreachable)},
		faultkit.Garbage:   {"": failed(allocation.Reset)},
		faultkit.Reset:     {"": failed(allocation.Reset)},
		faultkit.HalfClose: {"": failed(allocation.Reset)},
		// An http judge has no certificate that could be forged: that is what an https one is for.
		faultkit.WrongCert: {"http": good, "https": failed(allocation.TLS)},
		faultkit.Inject:    {"http": {alters: true}, "https": failed(allocation.TLS)},
		faultkit.Alter:     {"http": {alters: true}, "https": failed(allocation.TLS), "socks5 http": {alters: true}},
		faultkit.Reveal:    {"http http": {https: true, reveals: true}, "https http": {https: true, reveals: true}, "": good},
	} {
		for _, scheme := range []string{"http", "https", "socks5"} {
			for kind, base := range map[string]string{"http": j.HTTP, "https": j.HTTPS} {
				t.Run(fmt.Sprintf("%s/%s proxy/%s judge", orWell(fault), scheme, kind), func(t *testing.T) {
					t.Parallel()
					p := proxy(t, scheme, faultkit.Options{Authority: ca, User: "ann", Password: canary})
					after := int64(20)
					switch {
					case scheme == "https":
						after = 1000 // TLS to the proxy comes first
					case kind == "https":
						after = 400
					}
					cfg := Config{Judge: base + Path, RootCAs: ca.Pool()}
					w, ok := wants[scheme+" "+kind]
					if !ok {
						if w, ok = wants[kind]; !ok {
							w = wants[""]
						}
					}
					if w.kind == allocation.Timeout {
						cfg.Timeout = soon
					}
					c := checker(t, cfg)
					direct, err := c.Direct(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if err := p.Fail(fault, after); err != nil {
						t.Fatal(err)
					}
					v, err := c.Probe(t.Context(), allocation.Allocation{Pool: "p", ID: allocation.ID(p.URL()), URL: p.URL()}, direct)
					if err != nil {
						t.Fatal(err)
					}
					if strings.Contains(fmt.Sprintf("%+v", v), canary) || strings.Contains(fmt.Sprintf("%+v", v), url.QueryEscape(canary)) {
						t.Errorf("the verdict holds the password: %+v", v)
					}
					if v.OK != (w.kind == "") || v.Kind != w.kind || v.Alters != w.alters || v.Reveals != w.reveals {
						t.Fatalf("%+v, want %+v", v, w)
					}
					if !v.OK {
						return
					}
					if fault != faultkit.Inject && fault != faultkit.Alter && v.HTTPS != w.https {
						t.Errorf("https %t: %+v", v.HTTPS, v)
					}
					if v.Latency <= 0 {
						t.Errorf("latency %s", v.Latency)
					}
					if lied := fault == faultkit.Inject || fault == faultkit.Alter || fault == faultkit.WrongCert; !lied && v.Exit.String() != p.From().String() {
						t.Errorf("exit %s, want %s", v.Exit, p.From())
					}
				})
			}
		}
	}
}

func orWell(f faultkit.Fault) string {
	if f == faultkit.NoFault {
		return "well"
	}
	return string(f)
}

// An endpoint that carries http and opens no tunnel does not do https, and that is said.
func TestNoTunnelIsNoHTTPS(t *testing.T) {
	t.Parallel()
	j := judgeAt(t, authority(t), nil)
	target, err := url.Parse(j.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	plain := judgeAt(t, authority(t), func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			http.Error(w, "no tunnels here", http.StatusForbidden)
			return
		}
		if r.URL.Host != target.Host {
			t.Errorf("asked for %s", r.URL)
		}
		Judge(w, r)
	})
	c := checker(t, Config{Judge: j.HTTP + Path})
	direct, err := c.Direct(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(plain.HTTP)
	v, err := c.Probe(t.Context(), allocation.Allocation{ID: "p", URL: u}, direct)
	if err != nil || !v.OK || v.HTTPS || !strings.Contains(v.Detail, "CONNECT with 403") {
		t.Errorf("%+v %v", v, err)
	}
}

func TestRealProxiesAreChecked(t *testing.T) {
	t.Parallel()
	ca := authority(t)
	j := judgeAt(t, ca, nil)
	login := url.UserPassword("ann", canary)
	for _, base := range []string{j.HTTP, j.HTTPS} {
		c := checker(t, Config{Judge: base + Path, RootCAs: ca.Pool()})
		direct, err := c.Direct(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, u := range map[string]*url.URL{"tinyproxy": faultkit.Tinyproxy(t, login), "microsocks": faultkit.Microsocks(t, login)} {
			v, err := c.Probe(t.Context(), allocation.Allocation{ID: name, URL: u}, direct)
			if err != nil || !v.OK || !v.HTTPS || v.Alters || v.Exit != addr("127.0.0.1") {
				t.Errorf("%s by %s: %+v %v", name, base, v, err)
			}
			wrong := *u
			wrong.User = url.UserPassword("ann", "wrong")
			if v, err := c.Probe(t.Context(), allocation.Allocation{ID: name, URL: &wrong}, direct); err != nil || v.Kind != allocation.ProxyAuth {
				t.Errorf("%s with a wrong password: %+v %v", name, v, err)
			}
		}
	}
}

// A judge that is away, or is no judge, says nothing of the endpoints.
func TestAnAbsentJudgeBlamesNobody(t *testing.T) {
	t.Parallel()
	name := testredis.Name("probe")
	ps, _ := pools(t, name, &allocation.Require{})
	p := proxy(t, "http", faultkit.Options{})
	fill(t, ps, name, p.URL().String())
	gone := judgeAt(t, authority(t), nil)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	page := judgeAt(t, authority(t), text("<p>hello"))
	for judge, want := range map[string]error{gone.HTTP + Path: ErrJudgeAway, page.HTTP: ErrJudgeAway, "": ErrNoJudge, "ftp://x/": ErrNoJudge} {
		if _, err := checker(t, Config{Judge: judge}).Plan(t.Context(), ps, name); !errors.Is(err, want) {
			t.Errorf("judge %q: %v", judge, err)
		}
	}
	list, err := ps.List(t.Context(), name)
	if err != nil || list[0].State != allocation.Candidate || list[0].Verdict != nil {
		t.Errorf("%+v %v", list, err)
	}
	if n := p.Stats().Connections; n != 0 {
		t.Errorf("the endpoint was asked %d times", n)
	}
}

// Public proxies are not sent to an address that only we can reach.
func TestAPrivateJudgeIsNotForPublicPools(t *testing.T) {
	t.Parallel()
	name := testredis.Name("probe")
	public, err := allocation.New(testredis.Client(t), []allocation.Config{{Name: name, Require: &allocation.Require{}}})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, public, name, "http://8.8.8.8:3128")
	for _, judge := range []string{"http://127.0.0.1:1/judge", "http://localhost:1/judge", "http://10.1.2.3/judge", "http://judge/judge", "http://[::1]/judge"} {
		_, err := checker(t, Config{Judge: judge}).Plan(t.Context(), public, name)
		if !errors.Is(err, ErrNoJudge) || !strings.Contains(err.Error(), "web.judge") {
			t.Errorf("%s: %v", judge, err)
		}
	}
	if err := checker(t, Config{Judge: "https://feeds.example.org/judge"}).fitting(name, false); err != nil {
		t.Error(err)
	}
}

func TestABusyJudgeIsAskedAgain(t *testing.T) {
	t.Parallel()
	var busy serving
	busy.set(Judge)
	j := judgeAt(t, authority(t), busy.ServeHTTP)
	c := checker(t, Config{Judge: j.HTTP + Path})
	direct, err := c.Direct(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	busy.set(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		Judge(w, r)
	})
	v, err := c.Probe(t.Context(), allocation.Allocation{ID: "p", URL: proxy(t, "socks5", faultkit.Options{}).URL()}, direct)
	if err != nil || !v.OK || v.Latency > time.Second {
		t.Errorf("%+v %v after %d", v, err, asked)
	}
}
