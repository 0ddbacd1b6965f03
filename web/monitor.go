package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynqmon"
	"github.com/redis/go-redis/v9"
)

const monitorRoot = "/monitor"

// monitor is asynqmon under our login. It has two forms, since its page asks
// the server whether to show its buttons: one that changes queues, for admins,
// and one that only looks. The route lets no POST or DELETE of others through.
type monitor struct {
	prefix         prefix // asynqmon is the one that knows of it: its page makes its links by script
	looks, changes *asynqmon.HTTPHandler
	lookPage       monitorPage
	changePage     monitorPage
	look           time.Duration // asynqmon knows no context: how long one who looks waits for it
	redis          redis.UniversalClient

	once sync.Once
	err  error
}

// monitorPage is asynqmon's one page, and the policy that it needs.
type monitorPage struct {
	html   []byte
	policy string
}

func newMonitor(opt asynq.RedisConnOpt, rdb redis.UniversalClient, p prefix, look time.Duration) (*monitor, error) {
	if opt == nil {
		return nil, errors.New("web: asynqmon needs a connection to Redis")
	}
	m := &monitor{prefix: p, look: look, redis: rdb}
	root := string(p) + monitorRoot
	for _, f := range []struct {
		readOnly bool
		handler  **asynqmon.HTTPHandler
		page     *monitorPage
	}{{true, &m.looks, &m.lookPage}, {false, &m.changes, &m.changePage}} {
		*f.handler = asynqmon.New(asynqmon.Options{
			RootPath: root, RedisConnOpt: opt, ReadOnly: f.readOnly,
			PayloadFormatter: asynqmon.PayloadFormatterFunc(func(_ string, b []byte) string { return readable(b) }),
			ResultFormatter:  asynqmon.ResultFormatterFunc(func(_ string, b []byte) string { return readable(b) }),
		})
		var err error
		if *f.page, err = readMonitorPage(*f.handler, root); err != nil {
			return nil, err
		}
	}
	return m, nil
}

var (
	// What asynqmon's page loads from elsewhere (fonts), and a manifest that
	// browsers fetch without a cookie.
	outsideLinks = regexp.MustCompile(`<link[^>]+(?:href="https?://[^"]*"|rel="manifest")[^>]*>`)
	inlineScript = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
)

// readMonitorPage takes asynqmon's page without what it loads from other sites,
// and a policy that names each of its inline scripts by its hash. Its styles are
// made by script, so they cannot be named.
func readMonitorPage(h http.Handler, root string) (monitorPage, error) {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(context.Background(), http.MethodGet, root+"/", nil))
	if rec.Code != http.StatusOK {
		return monitorPage{}, fmt.Errorf("web: asynqmon's page: status %d", rec.Code)
	}
	html := outsideLinks.ReplaceAll(rec.Body.Bytes(), nil)
	sources := []string{"'self'"}
	for _, m := range inlineScript.FindAllSubmatch(html, -1) {
		sources = append(sources, hashSource(m[1]))
	}
	return monitorPage{html: html, policy: "default-src 'none'; script-src " + strings.Join(sources, " ") +
		"; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}, nil
}

// hashSource names inline text in a policy.
func hashSource(text []byte) string {
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (m *monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) { //nolint:contextcheck // the request's own, on its way through prefix.back
	handler, page := m.looks, m.lookPage
	if whoAsks(r.Context()).Role == Admin {
		handler, page = m.changes, m.changePage
	}
	path := strings.TrimPrefix(r.URL.Path, monitorRoot)
	w.Header().Set("Content-Security-Policy", page.policy)
	if strings.HasPrefix(path, "/api/") || isAsset(path) {
		if !strings.HasPrefix(path, "/api/") {
			w.Header().Set("Cache-Control", "private, max-age=86400")
		}
		r = m.prefix.back(r)
		if r.Method == http.MethodHead { // asynqmon knows no HEAD; net/http sends no body to one
			asked := *r
			asked.Method = http.MethodGet
			r = &asked
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if strings.HasPrefix(path, "/api/") {
			says := "Redis does not answer"
			if r.Method != http.MethodGet {
				says += "; " + notKnown
			}
			ctx, cancel := context.WithTimeout(r.Context(), m.look)
			defer cancel()
			answers := func() bool { return m.redis.Ping(ctx).Err() == nil }
			http.TimeoutHandler(handler, m.look, says+"\n").ServeHTTP(&inTime{ResponseWriter: w, deed: deedOf(ctx), answers: answers, says: says}, r) //nolint:contextcheck // the same
			return
		}
		handler.ServeHTTP(w, r)
		return
	}
	// Every other path is a view within the one page.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(page.html)
}

// inTime says of an answer that did not come in time when to ask again. asynqmon
// gives Redis up by itself sooner, and what it says then, 500, is no answer either.
type inTime struct {
	http.ResponseWriter
	deed    *deed
	answers func() bool // whether Redis does
	says    string
	said    bool // in place of what asynqmon says
}

func (i *inTime) WriteHeader(status int) {
	if status == http.StatusInternalServerError && !i.answers() {
		status, i.said = http.StatusServiceUnavailable, true
	}
	if status >= 400 && i.deed != nil {
		i.deed.failed = fmt.Sprintf("asynqmon answered %d", status)
	}
	if status == http.StatusServiceUnavailable {
		i.Header().Set("Retry-After", strconv.FormatInt(ceilSeconds(redisRetry), 10))
		i.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if i.deed != nil {
			i.deed.failed, i.deed.away = notKnown, true
		}
	}
	i.ResponseWriter.WriteHeader(status)
	if i.said {
		_, _ = io.WriteString(i.ResponseWriter, i.says+"\n")
	}
}

func (i *inTime) Write(b []byte) (int, error) {
	if i.said {
		return len(b), nil
	}
	return i.ResponseWriter.Write(b)
}

// isAsset says that a path is a file of asynqmon's, by its ending: views have none.
func isAsset(path string) bool {
	if strings.HasPrefix(path, "/static/") {
		return true
	}
	return strings.Count(path, "/") == 1 && strings.Contains(path, ".")
}

func (m *monitor) close() error {
	m.once.Do(func() {
		for _, h := range []*asynqmon.HTTPHandler{m.looks, m.changes} {
			if err := h.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
				m.err = errors.Join(m.err, fmt.Errorf("web: close asynqmon: %w", err))
			}
		}
	})
	return m.err
}

// readable is a payload or a result for a person: JSON as JSON, other text with
// what is not printable shown by its code.
func readable(b []byte) string {
	const most = 64 << 10
	if len(b) == 0 {
		return ""
	}
	var compact bytes.Buffer
	if len(b) <= most && json.Compact(&compact, b) == nil {
		return compact.String()
	}
	cut := ""
	if len(b) > most {
		b, cut = b[:most], fmt.Sprintf("… (%d bytes in all)", len(b))
	}
	if !utf8.Valid(b) {
		return fmt.Sprintf("%d bytes that are no text", len(b))
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < ' ' || r == 0x7f) {
			return '\uFFFD'
		}
		return r
	}, string(b)) + cut
}
