package faultkit

import (
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"
)

// startHTTP serves CONNECT, and requests in absolute form.
func (p *Proxy) startHTTP() error {
	p.http = &http.Server{
		Handler:           http.HandlerFunc(p.serve),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	var l net.Listener = p.gate
	if p.scheme == "https" {
		if p.o.Authority == nil {
			return errors.New("an https proxy needs an Authority")
		}
		cert, err := p.o.Authority.Leaf()
		if err != nil {
			return err
		}
		l = tls.NewListener(p.gate, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
	}
	p.running.Go(func() { _ = p.http.Serve(l) })
	return nil
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	seen := Seen{Method: r.Method, Target: r.RequestURI, Header: r.Header.Clone()}
	seen.User, seen.Password = credentials(r)
	p.note(seen)
	f, _, _ := p.failing()
	switch {
	case f == Garbage:
		p.garbage(w)
	case f == Auth || !p.admitted(seen):
		p.authFailures.Add(1)
		w.Header().Set("Proxy-Authenticate", `Basic realm="`+p.o.Name+`"`)
		http.Error(w, "a user and password are needed", http.StatusProxyAuthRequired)
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.IsAbs() && r.URL.Scheme == "http":
		p.forward(w, r, f)
	default:
		http.Error(w, "this is a proxy: ask for http://host/path, or CONNECT", http.StatusBadRequest)
	}
}

func credentials(r *http.Request) (user, password string) {
	_, encoded, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	plain, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", ""
	}
	user, password, _ = strings.Cut(string(plain), ":")
	return user, password
}

func (p *Proxy) admitted(s Seen) bool {
	return p.o.User == "" || subtle.ConstantTimeCompare([]byte(s.User+":"+s.Password), []byte(p.o.User+":"+p.o.Password)) == 1
}

// garbageText is no answer in any of the protocols.
const garbageText = "\x00\xff\x13SSH-2.0-garbage\r\n\r\n"

func (p *Proxy) garbage(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, garbageText)
}

// forward passes on a request in absolute form.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, f Fault) {
	p.requests.Add(1)
	out := r.Clone(r.Context())
	out.RequestURI = ""
	dropHopHeaders(out.Header)
	out.Header.Add("Via", "1.1 "+p.o.Name)
	if f == Reveal {
		client, _, _ := net.SplitHostPort(r.RemoteAddr)
		out.Header.Set("X-Forwarded-For", client)
		out.Header.Set("X-Real-Ip", client)
		out.Header.Set("Forwarded", "for="+client)
	}
	resp, err := p.transport.RoundTrip(out)
	if err != nil {
		http.Error(w, "the target cannot be reached", http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	dropHopHeaders(resp.Header)
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.Header().Add("Via", "1.1 "+p.o.Name)
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(flusher{w}, resp.Body); err != nil {
		// What the client has is not whole, and it must see that.
		panic(http.ErrAbortHandler)
	}
}

// flusher sends every piece at once, as a proxy of a slow body should.
type flusher struct{ w http.ResponseWriter }

func (f flusher) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if err == nil {
		err = http.NewResponseController(f.w).Flush()
	}
	return n, err
}

// dropHopHeaders takes out what concerns one connection (RFC 9110, 7.6.1).
func dropHopHeaders(h http.Header) {
	for _, v := range h.Values("Connection") {
		for _, name := range strings.Split(v, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{
		"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade",
	} {
		h.Del(name)
	}
}

// tunnel answers CONNECT and joins the two ends.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	target, err := p.dial(r.Context(), r.Host)
	if err != nil {
		http.Error(w, "the target cannot be reached", http.StatusBadGateway)
		return
	}
	defer func() { _ = target.Close() }()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "this connection cannot be a tunnel", http.StatusInternalServerError)
		return
	}
	defer func() { _ = client.Close() }()
	p.tunnels.Add(1)
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	join(client, target, buffered)
}

// join copies both ways until both ends are done, or one breaks.
func join(client, target net.Conn, fromClient io.Reader) {
	done := make(chan struct{}, 2)
	pipe := func(dst net.Conn, src io.Reader) {
		_, err := io.Copy(dst, src)
		if cw, ok := dst.(interface{ CloseWrite() error }); ok && err == nil {
			_ = cw.CloseWrite()
		} else {
			_ = client.Close()
			_ = target.Close()
		}
		done <- struct{}{}
	}
	go pipe(target, fromClient)
	go pipe(client, target)
	<-done
	<-done
}
