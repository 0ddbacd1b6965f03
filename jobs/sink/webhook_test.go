package sink

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"feedwarden/jobs/fetch"
)

// pythonVerifies checks a signature as a receiver would that knows only the docs.
const pythonVerifies = `
import hashlib, hmac, sys
secret, header = sys.argv[1], sys.argv[2]
parts = dict(p.split("=", 1) for p in header.split(","))
body = sys.stdin.buffer.read()
want = hmac.new(secret.encode(), parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
sys.exit(0 if hmac.compare_digest(want, parts["v1"]) else 1)
`

func TestSignatureIsVerifiedByPythonAndOpenssl(t *testing.T) {
	t.Parallel()
	const secret = "a secret, with ümlaut"
	got := make(chan [2]string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- [2]string{r.Header.Get(HeaderSignature), string(body)}
	}))
	defer srv.Close()
	begun := time.Now()
	deliver(t, outlet(t, nil), Config{Webhook: srv.URL + "/hook", Secret: secret}, delivery("news", version(3, 5, 20)))
	sent := <-got
	signature, body := sent[0], sent[1]

	python := func(body string) error {
		cmd := exec.Command("python3", "-c", pythonVerifies, secret, signature)
		cmd.Stdin = strings.NewReader(body)
		return cmd.Run()
	}
	if err := python(body); err != nil {
		t.Errorf("python refuses %s: %v", signature, err)
	}
	if err := python(strings.Replace(body, "news@3", "news@4", 1)); err == nil {
		t.Error("python takes a body that was changed")
	}
	instant, mac, _ := strings.Cut(strings.TrimPrefix(signature, "t="), ",v1=")
	cmd := exec.Command("openssl", "dgst", "-sha256", "-hmac", secret)
	cmd.Stdin = strings.NewReader(instant + "." + body)
	out, err := cmd.Output()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), mac) {
		t.Errorf("openssl says %s (%v), the header %s", out, err, mac)
	}
	if at, err := time.ParseDuration(instant + "s"); err != nil || time.Unix(int64(at.Seconds()), 0).Sub(begun).Abs() > time.Minute {
		t.Errorf("signed at %s", instant)
	}
}

func TestWebhookIsToldFeedVersionKeyAndItems(t *testing.T) {
	t.Parallel()
	var header http.Header
	var doc Document
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		_ = json.NewDecoder(r.Body).Decode(&doc)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()
	deliver(t, guarded(t, nil, fetch.Config{AllowPrivate: true, UserAgent: "ours/1 (+https://example.org)"}), Config{Webhook: srv.URL}, delivery("news", version(3, 2, 20)))
	if header.Get(HeaderKey) != "news@3" || header.Get("Content-Type") != "application/json" || header.Get("User-Agent") != "ours/1 (+https://example.org)" {
		t.Errorf("%v", header)
	}
	if _, signed := header[HeaderSignature]; signed {
		t.Error("signed without a secret")
	}
	if doc.Key != "news@3" || doc.Version != 3 || doc.Count != 2 || len(doc.Items) != 2 || doc.Items[1].ID != "item-3-1" {
		t.Errorf("%+v", doc)
	}
}

func TestBodyHasABoundAndThenRefersToTheVersion(t *testing.T) {
	t.Parallel()
	var doc Document
	var length int64
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		length = r.ContentLength
		_ = json.NewDecoder(r.Body).Decode(&doc)
	}))
	defer srv.Close()
	deliver(t, outlet(t, nil), Config{Webhook: srv.URL}, delivery("news", version(3, 100, webhookMost/90)))
	if length > 1000 || !doc.Omitted || doc.Items != nil || doc.Count != 100 || doc.Key != "news@3" {
		t.Errorf("%d bytes, %+v", length, doc)
	}
}

func TestAnswersOfAWebhookMeanAgainOrNeverAgain(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct{ ok, permanent bool }{
		200: {true, false}, 204: {true, false}, 500: {false, false}, 503: {false, false}, 429: {false, false}, 404: {false, false},
		401: {false, false}, 400: {false, true}, 410: {false, true}, 413: {false, true}, 422: {false, true}, 302: {false, true},
	} {
		var followed atomic.Bool
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				followed.Store(true)
			}
			w.Header().Set("Location", "/elsewhere")
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(status)
		}))
		err := outlet(t, nil).Deliver(t.Context(), Config{Webhook: srv.URL}, delivery("news", version(1, 1, 1)))
		var se *Error
		if errors.As(err, &se) == want.ok || (se != nil && (se.Permanent != want.permanent || se.RetryAfter != 2*time.Minute)) {
			t.Errorf("%d: %+v", status, se)
		}
		if followed.Load() {
			t.Errorf("%d: the redirect was followed", status)
		}
		srv.Close()
	}
}

func TestWebhookIsRefusedWhereTheGuardSaysSo(t *testing.T) {
	t.Parallel()
	var asked atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	defer srv.Close()
	port := srv.URL[strings.LastIndexByte(srv.URL, ':'):]
	for name, c := range map[string]struct {
		url string
		cfg fetch.Config
	}{
		"loopback":                    {srv.URL, fetch.Config{}},
		"a name of loopback":          {"http://localhost" + port, fetch.Config{}},
		"mapped":                      {"http://[::ffff:127.0.0.1]" + port, fetch.Config{}},
		"metadata, though private go": {"http://169.254.169.254/latest", fetch.Config{AllowPrivate: true}},
		"a host not on the list":      {srv.URL, fetch.Config{AllowPrivate: true, AllowHosts: []string{"example.org"}}},
		"another protocol's port":     {"http://127.0.0.1:6379/", fetch.Config{AllowPrivate: true}},
	} {
		var se *Error
		err := guarded(t, nil, c.cfg).Deliver(t.Context(), Config{Webhook: c.url}, delivery("news", version(1, 1, 1)))
		if !errors.As(err, &se) || !se.Permanent {
			t.Errorf("%s: %v", name, err)
		}
	}
	if asked.Load() {
		t.Error("a request went out")
	}
}

func TestErrorsOfAWebhookHoldNothingOfItsURLButTheHost(t *testing.T) {
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, _ := http.NewResponseController(w).Hijack()
		c.Close()
	}))
	defer silent.Close()
	teapot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer teapot.Close()
	for _, base := range []string{silent.URL, teapot.URL, "http://127.0.0.1:1", "http://nowhere.invalid", "http://10.0.0.1:6379"} {
		raw := strings.Replace(base, "://", "://canary-user:canary-pass@", 1) + "/canary-path?token=canary-query"
		err := outlet(t, nil).Deliver(t.Context(), Config{Webhook: raw, Secret: "canary-secret"}, delivery("news", version(1, 1, 1)))
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), "canary") {
			t.Errorf("%s: %v", base, err)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), "canary") {
				t.Errorf("%s: %T %v", base, e, e)
			}
		}
	}
}
