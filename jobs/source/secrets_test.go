package source

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"feedwarden/jobs/fetch"
)

// A target that echoes what it was asked for and with brings no secret of the
// request into an error or what is kept of its answer, however it writes it.
func TestNoEchoOfASecretIsShown(t *testing.T) {
	const secret = `k3y+"of/mine é&<42>`
	for name, c := range map[string]Config{
		"in the query":              {URL: "https://h/feed?api_key=" + url.QueryEscape(secret)},
		"in a parameter":            {URL: "https://h/feed", Params: map[string]string{"access_token": secret}},
		"in a header":               {URL: "https://h/feed", Headers: map[string]string{"X-Mine": secret}, Secrets: []string{secret}},
		"in the path":               {URL: "https://h/private/" + url.PathEscape(secret) + "/feed", Secrets: []string{secret}},
		"in a parameter of no name": {URL: "https://h/feed", Params: map[string]string{"k": secret}, Secrets: []string{secret}},
	} {
		for _, c.Kind = range []string{"syndication", "json", "html"} {
			switch c.Kind {
			case "json":
				c.Items = ".error|error"
			case "html":
				c.Items = "article"
			}
			s := build(t, c)
			req, err := s.Request(Page{})
			if err != nil {
				t.Fatal(err)
			}
			for _, echoed := range []string{
				secret, url.QueryEscape(secret), url.PathEscape(secret), req.URL,
				strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;").Replace(secret),
			} {
				for form, body := range map[string]string{
					"a page":         "<html><body><p>Cannot GET " + echoed + "</p></body></html>",
					"a cut snippet":  strings.Repeat("x", 108) + " " + echoed + strings.Repeat("y", 100),
					"JSON":           `{"error": "no ` + strings.NewReplacer(`"`, `\"`, "/", `\/`).Replace(echoed) + `"}`,
					"an escape more": `{"error": "no ` + strings.NewReplacer(`"`, `\"`, "&", `\u0026`, "<", `\u003c`, ">", `\u003e`).Replace(echoed) + `"}`,
				} {
					_, err := s.Read(&fetch.Response{Status: http.StatusOK, Header: http.Header{}, Body: []byte(body)})
					if err == nil {
						t.Fatalf("%s, %s, %s: it was read", name, c.Kind, form)
					}
					e := wantAnswer(t, err, NotAFeed)
					for what, text := range map[string]string{"the error": e.Error(), "what is kept": string(e.Kept)} {
						for _, part := range []string{"k3y+", "k3y%2", "mine", "42>"} {
							if strings.Contains(text, part) {
								t.Errorf("%s, %s, %s: %s shows %q: %.300s", name, c.Kind, form, what, part, text)
							}
						}
					}
				}
			}
		}
	}
}

// Nothing of a long secret is shown, such as a JWT, whose signature stands at its end.
func TestNoPartOfALongSecretIsShown(t *testing.T) {
	token := "eyJhbGciOiJSUzI1NiJ9." + strings.Repeat("Zm9v+YmFy/", 90) + ".c2lnbmF0dXJl=="
	s := build(t, Config{Kind: "syndication", URL: "https://h/feed", Headers: map[string]string{"X-Token": token + ";v=1"}, Secrets: []string{token, "-----BEGIN KEY-----\n" + token}})
	for _, echoed := range []string{
		token, url.QueryEscape(token), strings.ReplaceAll(token, "/", `\/`), strings.ReplaceAll(token, "+", "&#43;"), "-----BEGIN KEY-----\n" + token,
	} {
		for form, body := range map[string]string{
			"text": "bad token " + echoed + " was sent", "JSON": `{"error":"` + echoed + `","was":"sent"}`, "a page": "<p>" + echoed + "</p>was", "twice": echoed + " was " + echoed,
		} {
			_, err := s.Read(&fetch.Response{Status: http.StatusOK, Header: http.Header{}, Body: []byte(body)})
			e := wantAnswer(t, err, NotAFeed)
			for what, text := range map[string]string{"the error": e.Error(), "what is kept": string(e.Kept)} {
				for _, part := range []string{"eyJ", "Zm9v", "YmFy", "c2lnb"} {
					if strings.Contains(text, part) {
						t.Errorf("%s: %s shows %q: %.300s", form, what, part, text)
					}
				}
			}
			if !strings.Contains(string(e.Kept), "was") {
				t.Errorf("%s: kept %.300s, of what is no secret less than there was", form, e.Kept)
			}
		}
	}
}

// A parameter whose name but looks like a secret's is none: its value stands in
// hosts, paths and messages.
func TestParametersThatAreNoSecretsStayInErrors(t *testing.T) {
	for _, name := range []string{"author", "Authors", "author_name", "keyword", "keywords", "searchKeyword", "assignee", "assigned_to", "design"} {
		if got := secretsOf(Config{URL: "https://reuters.test/?" + name + "=reuters", Params: map[string]string{name: "reuters"}}); len(got) > 0 {
			t.Errorf("%s: %q is hidden", name, got)
		}
	}
	for _, name := range []string{"auth", "authorization", "Authorization", "authToken", "author_key", "apikey", "api_key", "X-Amz-Signature", "sig", "access_token", "PHPSESSIONID", "keyword_token"} {
		if got := secretsOf(Config{URL: "https://h.test/?" + name + "=reuters"}); len(got) != 1 {
			t.Errorf("%s: %q is hidden", name, got)
		}
	}
}

// What is no secret stays as it came, or nobody could see what was wrong.
func TestWhatIsNoSecretIsShown(t *testing.T) {
	c := Config{Kind: "syndication", URL: "https://h/feed?category=technology&key=ab", Params: map[string]string{"format": "extended"}, Headers: map[string]string{"Accept": "text/markdown"}}
	s := build(t, c)
	body := "no technology in extended form as text/markdown for ab"
	_, err := s.Read(&fetch.Response{Status: http.StatusOK, Header: http.Header{}, Body: []byte(body)})
	e := wantAnswer(t, err, NotAFeed)
	if string(e.Kept) != body || !strings.Contains(e.Error(), body) {
		t.Errorf("kept %q, error %v", e.Kept, e)
	}
}

// A secret in the path, where no place tells that it is one, is in no error of
// the fetch.
func TestASecretInThePathIsInNoErrorOfTheFetch(t *testing.T) {
	const secret = "k3y/of-mine"
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	c := fetch.New(fetch.Config{AllowPrivate: true})
	defer c.Close()
	for _, at := range []string{closed.URL + "/" + url.PathEscape(secret) + "/feed", closed.URL + "/" + secret, "http://192.0.2.1:25/" + secret} {
		s := build(t, Config{Kind: "syndication", URL: at, Secrets: []string{secret}})
		req, err := s.Request(Page{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Do(t.Context(), req, fetch.Via{})
		if err == nil || strings.Contains(err.Error(), "k3y") || strings.Contains(err.Error(), "of-mine") || !strings.Contains(err.Error(), "/[redacted]") {
			t.Errorf("%v", err)
		}
	}
}
