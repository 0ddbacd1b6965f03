package source

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"feedwarden/jobs/fetch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 11, 30, 8, 30, 0, 0, time.UTC)

func build(t testing.TB, c Config) Source {
	t.Helper()
	c.Now = func() time.Time { return now }
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func recorded(t testing.TB, parts ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// answerTo is a response to a request of s for a page.
func answerTo(t testing.TB, s Source, p Page, status int, body []byte, headers ...string) *fetch.Response {
	t.Helper()
	req, err := s.Request(p)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(req.URL)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &fetch.Response{Status: status, Header: h, Body: body, URL: u, Label: req.Label}
}

func wantAnswer(t testing.TB, err error, want AnswerKind) *AnswerError {
	t.Helper()
	var e *AnswerError
	if !errors.As(err, &e) {
		t.Fatalf("err = %v, want an *AnswerError of kind %s", err, want)
	}
	if e.Kind != want {
		t.Fatalf("kind = %s, want %s: %v", e.Kind, want, err)
	}
	return e
}
