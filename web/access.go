package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"
)

// access knows who may come in.
type access struct {
	keys     []key // none: everybody may do everything
	failures *failures
	endings  endings
	prefix   prefix
	now      func() time.Time
}

// key is a token as the server keeps it.
type key struct {
	name string
	role Role
	hash [sha256.Size]byte
}

// who is behind a request.
type who struct {
	Name string
	Role Role
	// Cookie says that they came by the login page, and can leave by it.
	Cookie bool
}

// nobody is who we see where no tokens are set: somebody on this machine, or else
// whoever reached the address.
func nobody(r *http.Request) who {
	me := who{Name: "anonymous", Role: Admin}
	if from := sender(r); from.IsValid() && from.Addr().IsLoopback() {
		me.Name = "local"
	}
	return me
}

func newAccess(tokens []Token, p prefix) *access {
	a := &access{failures: newFailures(), prefix: p, now: time.Now}
	for _, t := range tokens {
		a.keys = append(a.keys, key{name: t.Name, role: t.Role, hash: sha256.Sum256([]byte(t.Token))})
	}
	return a
}

func (a *access) open() bool { return len(a.keys) == 0 }

// find compares a text with every token, in a time that does not tell which is near.
func (a *access) find(text string) (key, bool) {
	sum := sha256.Sum256([]byte(text))
	found := -1
	for i := range a.keys {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], a.keys[i].hash[:]), i, found)
	}
	if found < 0 {
		return key{}, false
	}
	return a.keys[found], true
}

// identify finds who asks. A Bearer token goes before a cookie. The error is
// the 401, or the 429 of an address that fails too often.
func (a *access) identify(r *http.Request) (who, error) {
	if a.open() {
		return nobody(r), nil
	}
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, text, _ := strings.Cut(h, " ")
		if strings.EqualFold(scheme, "Bearer") {
			// A good token is let in even from an address that fails: behind a proxy
			// all share one address, and one script with an old token must not lock
			// out the rest. Guessing 16 characters is hopeless at any pace.
			if k, ok := a.find(strings.TrimSpace(text)); ok {
				return who{Name: k.name, Role: k.role}, nil
			}
		}
		if err := a.failures.note(r, a.now()); err != nil {
			return who{}, err
		}
		return who{}, problem(http.StatusUnauthorized, "invalid-token", "the Authorization header holds no token that is known: Authorization: Bearer TOKEN")
	}
	if c, err := r.Cookie(cookieName); err == nil {
		if s, ok := a.session(c.Value); ok && !a.endings.noted(r.Context(), s) {
			return who{Name: s.key.name, Role: s.key.role, Cookie: true}, nil
		}
		return who{}, problem(http.StatusUnauthorized, "session-ended", "the login has ended: log in again")
	}
	return who{}, problem(http.StatusUnauthorized, "no-token", "a token is asked for: Authorization: Bearer TOKEN, or the cookie of the login page")
}

// authorize lets a request in whose sender has a role, or answers it.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, need Role) (*http.Request, bool) {
	if need == "" {
		return r, true
	}
	me, err := s.access.identify(r)
	if err != nil {
		p := problemOf(err)
		if p.Status == http.StatusUnauthorized {
			challenge := `Bearer realm="feedwarden"`
			if p.Code == "invalid-token" {
				challenge += `, error="invalid_token"`
			}
			w.Header().Set("WWW-Authenticate", challenge)
		}
		if p.Code == "session-ended" {
			http.SetCookie(w, s.access.noCookie(r))
		}
		if p.Status == http.StatusUnauthorized && r.Method == http.MethodGet && wantsPage(r) {
			s.loginPage(w, r, http.StatusUnauthorized, loginView{Next: r.URL.RequestURI()})
			return r, false
		}
		s.fail(w, r, p)
		return r, false
	}
	if me.Role.rank() < need.rank() {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			s.refusedDeed(r, me)
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="feedwarden", error="insufficient_scope"`)
		s.fail(w, r, problem(http.StatusForbidden, "role", "this asks for the role "+string(need)+"; "+me.Name+" has "+string(me.Role)))
		return r, false
	}
	return r.WithContext(context.WithValue(r.Context(), whoKey{}, me)), true
}

type whoKey struct{}

// whoAsks is who was let in; the zero who on routes that are open.
func whoAsks(ctx context.Context) who {
	me, _ := ctx.Value(whoKey{}).(who)
	return me
}
