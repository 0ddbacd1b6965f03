package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// encode is v as JSON with nothing escaped for HTML: links stay readable.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("web: encode an answer: %w", err)
	}
	return b.Bytes(), nil
}

// answer writes v as JSON.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, status int, v any) {
	body, err := encode(v)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.write(w, r, status, jsonType, body)
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil { //nolint:gosec // a page is html/template's; all else is no page, and says so
		s.log.Debug("client went away", "method", r.Method, "route", r.Pattern, "error", err)
	}
}

// fail answers an error: as a page to a browser that asked for a page, else as
// a problem document. What is the server's own fault goes to the log.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // the client has gone
	}
	p := problemOf(err)
	if d := deedOf(r.Context()); d != nil {
		p.leaves(d.begun, err)
		d.failed, d.away = p.Detail, p.Code == "redis-away"
	}
	if p.Status == http.StatusInternalServerError || p.Code == "redis-away" {
		s.log.Error("request failed", "method", r.Method, "route", r.Pattern, "status", p.Status, "error", err)
	}
	h := w.Header()
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(ceilSeconds(p.retryAfter), 10))
	}
	h.Set("Cache-Control", "no-store")
	for _, name := range []string{"ETag", "Last-Modified", "Age"} {
		h.Del(name)
	}
	if wantsPage(r) {
		s.errorPage(w, r, p)
		return
	}
	body, err := encode(p)
	if err != nil {
		s.log.Error("a problem could not be written", "error", err)
		w.WriteHeader(p.Status)
		return
	}
	s.write(w, r, p.Status, problemType, body)
}
