package web

import (
	"net/http"
	"strings"
	"time"
)

const auditPerPage = 100

type auditView struct {
	frame
	Lines []auditLook
	First string
	Next  string
}

// auditLook is a line of the audit on a page.
type auditLook struct {
	AuditLine
	When moment
	Tone string
	More string // what the outcome says beyond that it was done
}

func newAuditLook(l AuditLine, now time.Time) auditLook {
	look := auditLook{AuditLine: l, When: relative(&l.At, now, ""), Tone: "good", More: strings.TrimPrefix(strings.TrimPrefix(l.Outcome, "done"), ": ")}
	if !l.Done {
		look.Tone = "bad"
	}
	return look
}

func (s *Server) auditPage(w http.ResponseWriter, r *http.Request) {
	q, err := pageQuery(r, "before")
	if err == nil && q["before"] != "" && !auditID(q["before"]) {
		err = badQuery("before: the ID of a line is wanted")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	lines, next, err := s.audit.page(r.Context(), q["before"], auditPerPage)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	now := time.Now()
	v := auditView{frame: s.frame(r, "audit", "Audit", now)}
	for _, l := range lines {
		v.Lines = append(v.Lines, newAuditLook(l, now))
	}
	if q["before"] != "" {
		v.First = "/audit"
	}
	if next != "" {
		v.Next = pageLink(nil, "before", next)
	}
	s.show(w, r, http.StatusOK, "audit", v)
}
