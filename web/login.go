package web

import (
	"net/http"
	"net/url"
	"strings"
)

// loginView is what the login page shows.
type loginView struct {
	Next  string // where to go then
	Error string
}

func (s *Server) showLogin(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.URL.Query().Get("next"))
	if _, err := s.access.identify(r); err == nil {
		http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // localPath let it through
		return
	}
	s.loginPage(w, r, http.StatusOK, loginView{Next: next})
}

// login takes the form. Too many failures close it to an address, though not to a
// good token: behind a proxy all share one address, and a script with an old token
// must not lock out whoever is called at night.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	f, err := readForm(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	next := localPath(f.Get("next"))
	if s.access.open() {
		http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // localPath let it through
		return
	}
	k, ok := s.access.find(strings.TrimSpace(f.Get("token")))
	if !ok {
		if err := s.access.failures.note(r, s.access.now()); err != nil {
			s.fail(w, r, err)
			return
		}
		s.log.Warn("login refused", "from", r.RemoteAddr)
		s.loginPage(w, r, http.StatusUnauthorized, loginView{Next: next, Error: "No such token."})
		return
	}
	s.log.Info("login", "name", k.name, "role", k.role, "from", r.RemoteAddr)
	http.SetCookie(w, s.access.cookie(r, k))
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // localPath let it through
}

// logout ends the session, and takes its cookie from this browser.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName); err == nil {
		if ended, ok := s.access.session(c.Value); ok {
			s.access.endings.note(r.Context(), ended, s.access.now())
		}
	}
	http.SetCookie(w, s.access.noCookie(r))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// localPath is a path of ours, or "/": a link to the login page must not lead
// on to another site.
func localPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n\t") || u.Path == "/login" || u.Path == "/logout" {
		return "/"
	}
	return u.RequestURI()
}
