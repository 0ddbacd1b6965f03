package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// crossing is one path and what its methods do.
type crossing struct {
	server  *Server
	methods map[string]route
}

// router sends a request to its route. What no route has is a 404 or a 405, but
// only to those who may come in at all.
func router(s *Server, all []route) http.Handler {
	crossings := map[string]*crossing{"/": {server: s}}
	for _, rt := range all {
		c := crossings[rt.path]
		if c == nil {
			c = &crossing{server: s, methods: map[string]route{}}
			crossings[rt.path] = c
		}
		c.methods[rt.method] = rt
	}
	mux := http.NewServeMux()
	for path, c := range crossings {
		mux.Handle(path, c)
	}
	return mux
}

func (c *crossing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	rt, known := c.methods[method]
	if method == http.MethodGet && !patient[rt.path] {
		ctx, cancel := context.WithTimeout(r.Context(), c.server.pace.look)
		defer cancel()
		r = r.WithContext(ctx)
	}
	if !known {
		rt.role = c.leastRole()
	}
	r, ok := c.server.authorize(w, r, rt.role)
	switch {
	case !ok:
	case len(c.methods) == 0:
		c.server.fail(w, r, problem(http.StatusNotFound, "no-route", "nothing is at this path"))
	case !known:
		w.Header().Set("Allow", c.allow())
		c.server.fail(w, r, problem(http.StatusMethodNotAllowed, "method", fmt.Sprintf("%s is not for this path; it takes %s", r.Method, c.allow())))
	case rt.gives != "" && !accepts(r.Header, rt.gives):
		c.server.fail(w, r, problem(http.StatusNotAcceptable, "not-acceptable", "this is given as "+rt.gives+" alone"))
	default:
		c.server.audited(rt, w, r)
	}
}

// leastRole is what a method that is not there asks for: nothing where a
// neighbour is open, else the right to look.
func (c *crossing) leastRole() Role {
	for _, rt := range c.methods {
		if rt.role == "" {
			return ""
		}
	}
	return Read
}

func (c *crossing) allow() string {
	names := slices.Collect(maps.Keys(c.methods))
	if _, ok := c.methods[http.MethodGet]; ok {
		names = append(names, http.MethodHead)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
