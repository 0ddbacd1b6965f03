package web

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"feedwarden/jobs/source"
)

const underPath = "/tools/feedwarden"

// underProxy is a world shown at underPath of another server, which keeps the
// prefix or cuts it off, and fails the test for what is asked outside of it.
func underProxy(t *testing.T, keeps bool, settings ...setting) (w *world, root string) {
	t.Helper()
	w = newWorld(t, append(settings, func(c *Config, _ *Parts, _ *pace) { c.BasePath = underPath })...)
	to, err := url.Parse(w.start())
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
		r.SetXForwarded()
	}, FlushInterval: -1}
	var through http.Handler = proxy
	if !keeps {
		through = http.StripPrefix(underPath, proxy)
	}
	front := http.NewServeMux()
	front.Handle(underPath+"/", through)
	front.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		t.Errorf("a link leads out of the prefix: %s %s, from %s", r.Method, r.URL, r.Referer())
		http.NotFound(rw, r)
	})
	srv := httptest.NewServer(front)
	t.Cleanup(srv.Close)
	return w, srv.URL
}

// walker is a browser without script that opens every link once.
type walker struct {
	*world
	client *http.Client
	root   string
	seen   map[string]int // path and query → status
	forms  map[string]url.Values
	kinds  map[string]bool // the first step of each path
}

func newWalker(w *world, root string) *walker {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.Fatal(err)
	}
	client := &http.Client{Jar: jar, Timeout: 10 * time.Second, Transport: &http.Transport{}}
	w.Cleanup(client.CloseIdleConnections)
	return &walker{world: w, client: client, root: root, seen: map[string]int{}, forms: map[string]url.Values{}, kinds: map[string]bool{}}
}

func (b *walker) open(address, from string) *http.Response {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), "GET", address, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,*/*;q=0.8")
	r.Header.Set("Referer", from)
	resp, err := b.client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	return resp
}

// submit sends a form as a browser of today does.
func (b *walker) submit(path string, f url.Values) *http.Response {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), "POST", b.root+path, strings.NewReader(f.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Origin", b.root)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := b.client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	return resp
}

// walk opens a page and all that it leads to.
func (b *walker) walk(start string) {
	b.Helper()
	type step struct{ to, from string }
	for todo := []step{{start, ""}}; len(todo) > 0 && len(b.seen) < 400; {
		next := todo[0]
		todo = todo[1:]
		u, err := url.Parse(next.to)
		if err != nil || u.Scheme+"://"+u.Host != b.root || b.seen[u.RequestURI()] != 0 {
			continue
		}
		resp := b.open(next.to, next.from)
		b.seen[u.RequestURI()] = resp.StatusCode
		inner, _ := strings.CutPrefix(u.Path, underPath)
		b.kinds[strings.SplitN(inner+"/", "/", 3)[1]] = true
		if resp.StatusCode != http.StatusOK {
			b.Errorf("%s, from %s: status %d", next.to, next.from, resp.StatusCode)
		}
		kind := resp.Header.Get("Content-Type")
		if strings.HasPrefix(kind, "text/event-stream") || !strings.HasPrefix(kind, "text/html") {
			resp.Body.Close()
			continue
		}
		doc, err := html.Parse(resp.Body)
		resp.Body.Close()
		if err != nil {
			b.Fatal(err)
		}
		links := b.links(doc)
		for _, link := range links {
			if to, err := resp.Request.URL.Parse(link); err == nil {
				to.Fragment = ""
				todo = append(todo, step{to.String(), next.to})
			}
		}
	}
}

// links are what a page names to be opened; its forms are noted.
func (b *walker) links(n *html.Node) (links []string) {
	attr := map[string]string{}
	for _, a := range n.Attr {
		attr[a.Key] = a.Val
	}
	for _, name := range []string{"href", "src", "data-events"} {
		if to, ok := attr[name]; ok && n.Type == html.ElementNode {
			links = append(links, to)
		}
	}
	if n.Data == "form" && n.Type == html.ElementNode && attr["method"] == "post" {
		fields := url.Values{}
		b.fields(n, attr["action"], fields)
		b.forms[attr["action"]] = fields
	}
	if n.Data == "form" && attr["method"] == "get" && attr["action"] != "" {
		links = append(links, attr["action"])
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		links = append(links, b.links(c)...)
	}
	return links
}

// fields are the hidden ones of a form, which all its buttons send.
func (b *walker) fields(n *html.Node, action string, into url.Values) {
	attr := map[string]string{}
	for _, a := range n.Attr {
		attr[a.Key] = a.Val
	}
	if n.Data == "input" && attr["type"] == "hidden" {
		into.Set(attr["name"], attr["value"])
	}
	if to := attr["formaction"]; to != "" {
		b.forms[to] = into
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.fields(c, action, into)
	}
}

// someOfAll is data for every page.
func (w *world) someOfAll() {
	raw := [][]byte{[]byte("{}")}
	w.put("news", time.Minute, raw, source.Item{ID: "a", Title: "A \" href=\"/x", URL: "https://example.org/a"}, source.Item{ID: "b", Title: "B"})
	w.put("news", time.Second, raw, source.Item{ID: "a", Title: "A", URL: "https://example.org/a"})
	w.put("trending-bd", time.Hour, raw, source.Item{ID: "a", Title: "A"})
	w.put("by-hand", time.Hour, raw, source.Item{ID: "a", Title: "A"})
	w.snoozed("snoozed-1", "trending-bd", `quota: charge "youtube": refused`, time.Now().Add(time.Minute))
	w.ended("ended-1", "news", "done", "", "1 item")
	w.wantStatus(w.post("/v1/jobs", `{"feed":"news","id":"pending-1"}`, "Authorization", "Bearer "+adminToken), 202)
}

// TestEveryLinkStaysUnderTheBasePath walks all pages behind a real proxy, as
// somebody who logs in by the form, and sends a form of each kind.
func TestEveryLinkStaysUnderTheBasePath(t *testing.T) {
	t.Parallel()
	for _, keeps := range []bool{true, false} {
		t.Run(fmt.Sprintf("the proxy keeps it=%v", keeps), func(t *testing.T) {
			t.Parallel()
			w, root := underProxy(t, keeps, withTokens)
			w.someOfAll()
			b := newWalker(w, root)

			resp := b.open(root+underPath+"/feeds/news?version=1", "")
			if resp.StatusCode != http.StatusUnauthorized {
				t.Fatalf("without a login: status %d", resp.StatusCode)
			}
			doc, err := html.Parse(resp.Body)
			resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			b.links(doc)
			form := b.forms[underPath+"/login"]
			if form == nil {
				t.Fatalf("forms %v: none leads to the login", b.forms)
			}
			form.Set("token", adminToken)
			resp = b.submit(underPath+"/login", form)
			resp.Body.Close()
			if resp.StatusCode != 200 || resp.Request.URL.RequestURI() != underPath+"/feeds/news?version=1" {
				t.Fatalf("after the login: status %d at %s", resp.StatusCode, resp.Request.URL)
			}

			b.walk(root + underPath + "/")
			if len(b.seen) < 10 {
				t.Errorf("only %d pages: %v", len(b.seen), b.seen)
			}
			for _, rt := range routes(w.server, http.NotFoundHandler()) {
				if first := strings.SplitN(rt.path+"/", "/", 3)[1]; rt.gives == pageType && first != "login" && first != "{$}" && !b.kinds[first] {
					t.Errorf("no page leads to %s", rt.path)
				}
			}
			for _, action := range slices.Sorted(maps.Keys(b.forms)) {
				if !strings.HasPrefix(action, underPath+"/") {
					t.Errorf("a form leads to %s", action)
				}
			}
			resp = b.submit(underPath+"/logout", url.Values{})
			resp.Body.Close()
			if resp.Request.URL.Path != underPath+"/login" {
				t.Errorf("after the logout: at %s", resp.Request.URL)
			}
			resp = b.open(root+underPath+"/", "")
			resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("after the logout: status %d, want 401", resp.StatusCode)
			}
		})
	}
}

// What programs are told of paths is under it too.
func TestHeadersNameTheBasePath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Parts, _ *pace) { c.BasePath = underPath + "/" })
	rec := w.post(underPath+"/v1/jobs", `{"feed":"news","id":"one"}`)
	w.wantStatus(rec, 202)
	if got := rec.Header().Get("Location"); got != underPath+"/v1/jobs/one" {
		t.Errorf("Location %q", got)
	}
	w.wantStatus(w.post("/v1/jobs", `{"feed":"news","id":"two"}`), 202) // who comes directly
	for path, want := range map[string]string{
		underPath + "/monitor": underPath + "/monitor/", "/monitor": underPath + "/monitor/", underPath + "//v1/jobs": underPath + "/v1/jobs",
	} {
		if got := w.get(path).Header().Get("Location"); got != want {
			t.Errorf("%s leads to %q, want %q", path, got, want)
		}
	}
	if got := w.get(underPath + "/v1/jobs?limit=1").Header().Get("Link"); got != `<`+underPath+`/v1/jobs?limit=1&page=2>; rel="next"` {
		t.Errorf("Link %q", got)
	}
	for path, want := range map[string]int{
		underPath: 200, underPath + "/": 200, underPath + "/healthz": 200, "/healthz": 200, underPath + "x": 404, underPath + "x/healthz": 404,
		"/tools": 404, underPath + underPath + "/healthz": 404, underPath + "/v1/jobs/a%2Fb": 404,
	} {
		if rec := w.get(path); rec.Code != want {
			t.Errorf("%s: status %d, want %d", path, rec.Code, want)
		}
	}
	for _, path := range []string{"/v1/openapi.json", "/v1/openapi.yaml"} {
		if got := w.get(underPath + path).Body.String(); !strings.Contains(got, underPath+"/") {
			t.Errorf("%s names no server at %s/", path, underPath)
		}
	}
	page := w.get(underPath + "/monitor/").Body.String()
	if !strings.Contains(page, `window.FLAG_ROOT_PATH="`+strings.ReplaceAll(underPath, "/", `\/`)+`\/monitor"`) {
		t.Error("asynqmon does not know where it is")
	}
	w.wantStatus(w.get(underPath+"/monitor/api/queues"), 200)
	w.wantStatus(w.post(underPath+"/monitor/api/queues/interactive:pause", ""), 204)
}

func TestACookieIsForTheBasePathAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens, func(c *Config, _ *Parts, _ *pace) { c.BasePath = underPath })
	rec := w.logIn(readToken, "/feeds/news")
	if c := rec.Result().Cookies(); len(c) != 1 || c[0].Path != underPath || rec.Header().Get("Location") != underPath+"/feeds/news" {
		t.Errorf("cookies %v, Location %q", c, rec.Header().Get("Location"))
	}
}

func TestWhatIsFilledInIsNoLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config, _ *Parts, _ *pace) { c.BasePath = underPath })
	w.put("news", time.Minute, nil,
		source.Item{ID: "a", Title: `x href="/stays"`, URL: "https://example.org/a"})
	rec := w.get(underPath+"/feeds/news", "Accept", "text/html")
	w.wantStatus(rec, 200)
	doc, err := html.Parse(rec.Body)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := html.Render(&b, doc); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`x href=&#34;/stays&#34;`, `href="https://example.org/a"`, `href="` + underPath + `/assets/style.css`} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("the page has no %s", part)
		}
	}
}

func TestLinksToElsewhereStay(t *testing.T) {
	t.Parallel()
	page := `<a href="/x"><img src="/y"><a href="//other/"><a href="https://other/"><a href="?"><form action="/f"><input value="/v"><button formaction="/g">` + ` data-events="/`
	want := `<a href="/p/x"><img src="/p/y"><a href="//other/"><a href="https://other/"><a href="?"><form action="/p/f"><input value="/v"><button formaction="/p/g">` + ` data-events="/p/`
	if got := string(prefix("/p").links([]byte(page))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(prefix("").links([]byte(page))); got != page {
		t.Errorf("without a prefix: %s", got)
	}
}

func TestPrefixOfPaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		prefix prefix
		path   string
		want   string
		ok     bool
	}{
		{"/a", "/a", "/", true}, {"/a", "/a/", "/", true}, {"/a", "/a/b", "/b", true}, {"/a", "/ab", "/ab", false}, {"/a", "/", "/", false}, {"/a", "", "", false},
		{"/a/b", "/a", "/a", false}, {"/a", "/a/a/b", "/a/b", true},
	} {
		if got, ok := c.prefix.cut(c.path); got != c.want || ok != c.ok {
			t.Errorf("%q.cut(%q) = %q, %v; want %q, %v", c.prefix, c.path, got, ok, c.want, c.ok)
		}
	}
}
