package web

import (
	"net/http"
	"runtime/debug"
	"strings"
)

// pagePolicy is the CSP of our own pages: no script and no style but our files.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// dataPolicy is the CSP of everything that is no page: should a browser show
// it, it runs nothing and belongs to nobody.
const dataPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"

// strictFor is how long a browser that came by TLS asks for nothing else. It holds
// for this name alone: names below it, and the list that browsers ship, are for
// the owner of the domain to decide.
const strictFor = "max-age=15552000"

// strict says whether a browser may be told so. The name of this machine is not
// ours alone: what else runs here, on other ports, would be out of reach.
func strict(r *http.Request) bool {
	return r.TLS != nil && !loopback(hostName(r.Host))
}

// shield is the outermost layer: headers that every answer carries, the name
// by which we were called, and where a browser's POST comes from.
func (s *Server) shield(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		w := &begun{ResponseWriter: to, prefix: s.prefix}
		h := w.Header()
		h.Set("Content-Security-Policy", dataPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		// same-origin rather than no-referrer: under the latter a browser's form sends "Origin: null".
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		if strict(r) {
			h.Set("Strict-Transport-Security", strictFor)
		}

		defer s.survive(w, r)
		if !s.hosts.ours(r) && !judgeIsAsked(r) {
			s.fail(w, r, problem(http.StatusMisdirectedRequest, "host", "this server does not go by that name; its names are localhost, the address it listens on, and web.hosts"))
			return
		}
		if err := crossOrigin.Check(r); err != nil {
			s.fail(w, r, problem(http.StatusForbidden, "cross-origin", "a page of another site may not do this"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// begun notes whether an answer has begun, and moves what its headers name.
type begun struct {
	http.ResponseWriter
	prefix prefix
	yes    bool
}

func (b *begun) WriteHeader(status int) {
	if !b.yes && status >= http.StatusOK { // 1xx is followed by another
		b.yes = true
		b.prefix.leave(b.Header())
	}
	b.ResponseWriter.WriteHeader(status)
}

func (b *begun) Write(p []byte) (int, error) {
	if !b.yes {
		b.WriteHeader(http.StatusOK)
	}
	return b.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach what is beneath.
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// survive turns a panic of a handler into a 500, or, when the answer has begun,
// into the end of the connection: a cut answer must not look like a whole one.
func (s *Server) survive(w *begun, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
		panic(v)
	}
	s.log.Error("a handler panicked", "method", r.Method, "route", r.Pattern, "panic", v, "stack", stack())
	if w.yes {
		panic(http.ErrAbortHandler)
	}
	s.fail(w, r, problem(http.StatusInternalServerError, "internal", "the server's log says what went wrong"))
}

func stack() string {
	const most = 4 << 10
	text := strings.TrimSpace(string(debug.Stack()))
	return text[:min(len(text), most)]
}
