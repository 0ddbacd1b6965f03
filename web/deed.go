package web

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
)

// deed is what a request that changes something does, for the audit. Handlers
// fill in what the route does not tell.
type deed struct {
	what, object string
	failed       string // why it was not done
	told         bool   // the handler has left the line itself
	begun        bool   // Redis answered when it was asked for
	away         bool   // and did not answer any more: no line can be left there
}

type deedKey struct{}

// deedOf is the deed of a request; nil for one that only looks.
func deedOf(ctx context.Context) *deed {
	d, _ := ctx.Value(deedKey{}).(*deed)
	return d
}

// deedWords name the routes' deeds. One that is not here is named by its route, so
// that nothing goes unseen.
var deedWords = map[string]string{
	"POST /v1/jobs":                     "enqueue",
	"DELETE /v1/jobs/{id}":              "cancel job",
	"PUT /v1/feeds/{name}":              "put content",
	"POST /v1/warm":                     "warm up",
	"POST /v1/quotas/{name}/charge":     "charge quota",
	"POST /v1/quotas/{name}/refund":     "refund quota",
	"POST /v1/schedules/{name}/pause":   "pause schedule",
	"POST /v1/schedules/{name}/resume":  "resume schedule",
	"POST /v1/schedules/{name}/trigger": "trigger schedule",
	"POST /monitor/":                    "change queues",
	"DELETE /monitor/":                  "delete from queues",
	"POST /logout":                      "log out",
}

// busyDeeds are those that programs do at any pace.
var busyDeeds = map[string]bool{"enqueue": true, "put content": true, "warm up": true, "charge quota": true, "refund quota": true}

// audited runs a handler that changes something, and leaves a line of it. A login
// is not among them: until it is done, nobody is known. A log-out needs no Redis.
func (s *Server) audited(rt route, w http.ResponseWriter, r *http.Request) {
	if rt.method == get || rt.path == "/login" {
		rt.serve(w, r)
		return
	}
	d := &deed{what: deedWords[rt.method+" "+rt.path], object: objectOf(rt, r)}
	if d.what == "" {
		d.what = rt.method + " " + rt.path
	}
	r, end := hurried(r.WithContext(context.WithValue(r.Context(), deedKey{}, d)), s.pace.look)
	defer end()
	if err := s.begin(r.Context()); err != nil && rt.path != "/logout" { //nolint:contextcheck // the request's own, hurried
		s.fail(w, r, err)
	} else {
		d.begun = true
		rt.serve(w, r)
	}
	switch l := s.auditLine(r, d); {
	case d.told:
	case d.away:
		s.log.Error("an audit line could not be written", "who", l.Who, "what", l.What, "object", l.Object, "outcome", l.Outcome)
	case busyDeeds[d.what]:
		s.audit.leaveBusy(r.Context(), l, s.access.now()) //nolint:contextcheck // the request's own, with its deed
	default:
		_, _ = s.audit.leave(r.Context(), l) //nolint:contextcheck // the request's own, with its deed; the log says what failed
	}
}

// refusedDeed leaves a line of somebody known who tried what their role does not allow.
func (s *Server) refusedDeed(r *http.Request, me who) {
	r = r.WithContext(context.WithValue(r.Context(), whoKey{}, me))
	d := &deed{what: r.Method, object: r.URL.Path, failed: "refused: " + me.Name + " has the role " + string(me.Role)}
	s.audit.leaveBusy(r.Context(), s.auditLine(r, d), s.access.now()) //nolint:contextcheck // the request's own, with who asks
}

func (s *Server) auditLine(r *http.Request, d *deed) AuditLine {
	me := whoAsks(r.Context())
	l := AuditLine{Who: me.Name, Role: string(me.Role), From: senderText(r), What: d.what, Object: d.object, Outcome: "done", Done: true}
	if d.failed != "" {
		l.Outcome, l.Done = d.failed, false
	}
	return l
}

// objectOf is what a route's path names.
func objectOf(rt route, r *http.Request) string {
	switch {
	case strings.Contains(rt.path, "{name}"):
		return r.PathValue("name")
	case strings.Contains(rt.path, "{id}"):
		return r.PathValue("id")
	case strings.HasPrefix(rt.path, monitorRoot):
		return strings.TrimPrefix(r.URL.Path, monitorRoot)
	}
	return ""
}

// senderText is the address a request came from.
func senderText(r *http.Request) string {
	if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return a.Addr().Unmap().String()
	}
	return ""
}
