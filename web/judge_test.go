package web

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/time/rate"

	"feedwarden/jobs/probe"
)

// The judge is open to all of the internet: by any name, without a token, and
// with nothing of ours in its answer.
func TestJudgeAnswersWhoeverAsksAndTellsNothingOfOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	rec := w.get("/judge?nonce=abc-123", "Host", "judge.example.net", "Via", "1.1 somebody", "Cookie", "fw=s3cret", "Authorization", "Bearer "+readToken)
	w.wantStatus(rec, http.StatusOK)
	a := decode[probe.Answer](w, rec)
	if a.Nonce != "abc-123" || a.Peer != "192.0.2.1" || a.Headers["Via"][0] != "1.1 somebody" || a.Headers["Cookie"][0] != probe.Hidden || a.Headers["Authorization"][0] != probe.Hidden {
		t.Errorf("%+v", a)
	}
	page := w.get("/judge?nonce=abc-123&as=page", "Host", "judge.example.net")
	if page.Body.String() != string(probe.Page("abc-123")) || !strings.HasPrefix(page.Header().Get("Content-Type"), "text/html") {
		t.Errorf("the page is %q", page.Body)
	}
	for _, answer := range []string{rec.Body.String(), page.Body.String()} {
		for _, secret := range append(allSecrets, "s3cret", "feedwarden", "v1.2.3", "redis") {
			if strings.Contains(strings.ToLower(answer), strings.ToLower(secret)) {
				t.Errorf("it says %q: %s", secret, answer)
			}
		}
	}
	for _, nonce := range []string{"", "<script>", "a b", strings.Repeat("x", 65)} {
		r := w.get("/judge?nonce=" + strings.ReplaceAll(strings.ReplaceAll(nonce, " ", "%20"), "<", "%3C"))
		w.wantProblem(r, http.StatusBadRequest, "nonce")
	}
	// The exemption from our names is the judge's alone.
	for _, path := range []string{"/judge/", "/judge/../v1/feeds", "/v1/feeds", "/judges"} {
		if rec := w.get(path+"?nonce=x", "Host", "judge.example.net"); rec.Code != http.StatusMisdirectedRequest {
			t.Errorf("%s by a foreign name: %d", path, rec.Code)
		}
	}
	if rec := w.post("/judge?nonce=x", "", "Host", "judge.example.net"); rec.Code != http.StatusMisdirectedRequest {
		t.Errorf("POST by a foreign name: %d", rec.Code)
	}
}

func TestJudgeHasAPace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.judgePace = rate.NewLimiter(0, 3)
	for range 3 {
		w.wantStatus(w.get("/judge?nonce=x"), http.StatusOK)
	}
	rec := w.get("/judge?nonce=x")
	w.wantProblem(rec, http.StatusTooManyRequests, "busy")
	if rec.Header().Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", rec.Header().Get("Retry-After"))
	}
	w.wantStatus(w.get("/healthz"), http.StatusOK)
}
