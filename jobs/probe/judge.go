package probe

import (
	"encoding/json"
	"net"
	"net/http"
)

// Judge answers GET /judge?nonce=N with an Answer, and with &as=page its Page.
// It says nothing but what it was sent; see Shown.
func Judge(w http.ResponseWriter, r *http.Request) {
	nonce := r.URL.Query().Get(NonceParam)
	if !GoodNonce(nonce) {
		http.Error(w, "a word to repeat is wanted: ?nonce=", http.StatusBadRequest)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if r.URL.Query().Get(PageParam) == PageValue {
		h.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(Page(nonce)) //nolint:gosec // GoodNonce lets no markup through
		return
	}
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		peer = r.RemoteAddr
	}
	h.Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(Answer{Nonce: nonce, Peer: peer, Headers: Shown(r.Header)}) // a client that went away
}
