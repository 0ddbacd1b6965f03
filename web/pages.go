package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed pages/*.html assets/*
var files embed.FS

const (
	pageType = "text/html"
	htmlType = "text/html; charset=utf-8"
)

// pages are the templates and the files beside them.
type pages struct {
	within map[string]*template.Template // in the layout
	alone  map[string]*template.Template // with nothing beside them: login, error
	assets map[string]asset
	tag    string // changes with any asset

	style       template.CSS // the whole sheet, for pages that stand alone
	alonePolicy string
}

type asset struct {
	body []byte
	kind string
	etag string
}

var pageFuncs = template.FuncMap{
	"iso":   func(t any) string { return timeOf(t).Format(time.RFC3339) },
	"utc":   func(t any) string { return timeOf(t).Format("2006-01-02 15:04:05") + " UTC" },
	"words": func(state any) string { return strings.ReplaceAll(fmt.Sprint(state), "_", " ") },
	"num":   func(n int) string { return grouped(int64(n)) },
	"form":  newButton,
}

func timeOf(v any) time.Time {
	switch t := v.(type) {
	case time.Time:
		return t.UTC()
	case *time.Time:
		return t.UTC()
	}
	return time.Time{}
}

func loadPages() (*pages, error) {
	p := &pages{within: map[string]*template.Template{}, alone: map[string]*template.Template{}, assets: map[string]asset{}}
	for _, set := range []struct {
		into   map[string]*template.Template
		layout string
		names  []string
	}{{p.within, "layout", []string{"overview", "feeds", "feed", "quotas", "quota", "pools", "pool", "schedules", "jobs", "job", "audit"}}, {p.alone, "alone", []string{"login", "error"}}} {
		for _, name := range set.names {
			t, err := template.New(name).Funcs(pageFuncs).ParseFS(files, "pages/"+set.layout+".html", "pages/"+name+".html")
			if err != nil {
				return nil, fmt.Errorf("web: page %s: %w", name, err)
			}
			set.into[name] = t.Lookup(set.layout)
		}
	}
	entries, err := files.ReadDir("assets")
	if err != nil {
		return nil, fmt.Errorf("web: assets: %w", err)
	}
	all := sha256.New()
	for _, e := range entries {
		body, err := files.ReadFile("assets/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("web: asset %s: %w", e.Name(), err)
		}
		all.Write(body)
		sum := sha256.Sum256(body)
		p.assets[e.Name()] = asset{body: body, kind: mimeOf(e.Name()), etag: `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	p.tag = hex.EncodeToString(all.Sum(nil)[:6])
	style := p.assets["style.css"].body
	p.style = template.CSS(style) //nolint:gosec // our own file
	p.alonePolicy = "default-src 'none'; style-src " + hashSource(style) + "; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	return p, nil
}

// mimeOf does not ask the system, whose tables differ.
func mimeOf(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

// asset serves a file of ours. One that is asked for by its tag never changes.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := s.pages.assets[r.PathValue("file")]
	if !ok {
		s.fail(w, r, problem(http.StatusNotFound, "no-route", "nothing is at this path"))
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("ETag", a.etag)
	h.Set("Cache-Control", "private, max-age=3600")
	if r.URL.Query().Get("v") == s.pages.tag {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	s.serve(w, r, time.Time{}, a.body)
}

// show writes a page in the layout.
func (s *Server) show(w http.ResponseWriter, r *http.Request, status int, name string, view any) {
	var b bytes.Buffer
	if err := s.pages.within[name].Execute(&b, view); err != nil {
		s.fail(w, r, fmt.Errorf("web: page %s: %w", name, err))
		return
	}
	w.Header().Set("Content-Security-Policy", pagePolicy)
	s.write(w, r, status, htmlType, s.prefix.links(b.Bytes()))
}

// aloneView is what a page shows that stands alone.
type aloneView struct {
	Title   string
	Style   template.CSS
	Login   loginView
	Problem *Problem
}

// showAlone writes a page that needs no other file, since those ask for a token.
func (s *Server) showAlone(w http.ResponseWriter, r *http.Request, status int, name string, view aloneView) {
	view.Style = s.pages.style
	var b bytes.Buffer
	if err := s.pages.alone[name].Execute(&b, view); err != nil {
		s.log.Error("a page could not be written", "page", name, "error", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", s.pages.alonePolicy)
	h.Set("Cache-Control", "no-store")
	s.write(w, r, status, htmlType, s.prefix.links(b.Bytes()))
}

func (s *Server) loginPage(w http.ResponseWriter, r *http.Request, status int, view loginView) {
	if status == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") == "" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="feedwarden"`)
	}
	s.showAlone(w, r, status, "login", aloneView{Title: "Log in", Login: view})
}

func (s *Server) errorPage(w http.ResponseWriter, r *http.Request, p *Problem) {
	s.showAlone(w, r, p.Status, "error", aloneView{Title: p.Title, Problem: p})
}
