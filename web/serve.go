package web

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// serve answers bytes with what validators, ranges and HEAD ask for (RFC 9110, 13
// and 14). A unit of ranges that is not known is as if none were asked for.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, modified time.Time, body []byte) {
	if asked := r.Header.Get("Range"); asked != "" && !strings.HasPrefix(asked, "bytes=") {
		whole := *r
		whole.Header = r.Header.Clone()
		whole.Header.Del("Range")
		r = &whole
	}
	http.ServeContent(&served{ResponseWriter: w, server: s, asks: r}, r, "", modified, bytes.NewReader(body))
}

// served makes a problem document of what cannot be served.
type served struct {
	http.ResponseWriter
	server *Server
	asks   *http.Request
	failed bool
}

func (v *served) WriteHeader(status int) {
	var p *Problem
	switch status {
	case http.StatusPreconditionFailed:
		p = problem(status, "other-version", "what If-Match or If-Unmodified-Since asks for is not what there is")
	case http.StatusRequestedRangeNotSatisfiable:
		p = problem(status, "range", "the Range is no part of the content; Content-Range says how long that is")
	default:
		v.ResponseWriter.WriteHeader(status)
		return
	}
	v.failed = true
	v.server.fail(v.ResponseWriter, v.asks, p)
}

func (v *served) Write(b []byte) (int, error) {
	if v.failed {
		return len(b), nil
	}
	return v.ResponseWriter.Write(b)
}

func (v *served) Unwrap() http.ResponseWriter { return v.ResponseWriter }
