package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strings"
	"time"
)

const (
	cookieName  = "feedwarden_session"
	sessionLife = 12 * time.Hour
)

// A session is its cookie: which token, until when, which of that token's
// sessions, and a MAC whose key is made from the token's hash. So web servers with
// the same tokens accept each other's, and a token that is taken away ends its
// sessions. A log-out ends one alone, see endings.
//
//	8 bytes of the token's ID | 8 bytes of the end, Unix seconds | 8 random bytes | 32 bytes of MAC
const (
	idSize      = 8
	saidSize    = idSize + 8 + 8
	sessionSize = saidSize + sha256.Size
)

// session is what a cookie of ours says.
type session struct {
	key key
	end time.Time
	mac []byte
}

func (k key) derive(purpose string, data []byte) []byte {
	m := hmac.New(sha256.New, k.hash[:])
	m.Write([]byte("feedwarden " + purpose + "\x00"))
	m.Write(data)
	return m.Sum(nil)
}

// seal makes a session of a token that ends at end.
func (k key) seal(end time.Time) string {
	b := append(make([]byte, 0, sessionSize), k.derive("id", nil)[:idSize]...)
	b = binary.BigEndian.AppendUint64(b, uint64(max(end.Unix(), 0)))
	b = b[:saidSize]
	_, _ = rand.Read(b[idSize+8:]) // it never fails
	b = append(b, k.derive("session", b)...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// session finds the token of a cookie whose MAC is right and whose end is to come.
func (a *access) session(value string) (session, bool) {
	b, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(b) != sessionSize {
		return session{}, false
	}
	said, mac := b[:saidSize], b[saidSize:]
	end := time.Unix(int64(min(binary.BigEndian.Uint64(said[idSize:]), 1<<40)), 0)
	for _, k := range a.keys {
		if hmac.Equal(k.derive("id", nil)[:idSize], said[:idSize]) && hmac.Equal(k.derive("session", said), mac) {
			return session{k, end, mac}, a.now().Before(end)
		}
	}
	return session{}, false
}

func (a *access) cookie(r *http.Request, k key) *http.Cookie {
	c := a.noCookie(r) //nolint:gosec // noCookie sets what a cookie needs
	c.Value, c.MaxAge = k.seal(a.now().Add(sessionLife)), int(sessionLife.Seconds())
	return c
}

// noCookie ends a session in the browser that has it.
func (a *access) noCookie(r *http.Request) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure where there is TLS: without it a browser would drop the cookie
		Name: cookieName, Path: a.prefix.cookiePath(), MaxAge: -1,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: overTLS(r),
	}
}

// overTLS says whether the browser's own connection is TLS: ours, or, as it says,
// that of the proxy in front. Who says so without one keeps only his own cookie
// from coming back.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}
