package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"feedwarden/jobs/source"
)

// Option replaces what a config is held against.
type Option func(*decoder)

// WithSchedules replaces the parser of schedules.
func WithSchedules(parse ParseSchedule) Option { return func(d *decoder) { d.schedule = parse } }

// WithCosts replaces the tables of costs.
func WithCosts(cost MethodCost) Option { return func(d *decoder) { d.cost = cost } }

// WithSources replaces the check of sources.
func WithSources(check CheckSource) Option { return func(d *decoder) { d.check = check } }

// topKeys are the file's sections.
var topKeys = []string{"redis", "web", "worker", "queues", "fetch", "quotas", "pools", "feeds"}

// Load reads a config file; getenv is os.LookupEnv. The error is a Faults with
// all that is wrong. It wraps fs.ErrNotExist where there is no such file.
func Load(path string, getenv func(string) (string, bool), opts ...Option) (*File, error) {
	src, err := readFile(path)
	if err != nil {
		problem := err
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			problem = pathErr.Err
		}
		return nil, Faults{{File: path, Problem: "cannot be read: " + problem.Error(), Err: err}}
	}
	return Parse(path, src, getenv, opts...)
}

// readFile reads a little more than a config may have, however long the file.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}

// Parse is Load for bytes that were read already; path is for the faults, and
// for what stands relative to the file.
func Parse(path string, src []byte, getenv func(string) (string, bool), opts ...Option) (*File, error) {
	d := &decoder{file: path, getenv: getenv, schedule: parseSchedule, cost: source.Cost, check: checkSource, env: map[string]string{}}
	for _, o := range opts {
		o(d)
	}
	doc, ok := d.readDocument(src)
	if !ok {
		return nil, d.faults.sorted(d.count)
	}
	b := builder{d: d, cols: doc.cols, anchors: map[string]*node{}, open: map[string]bool{}}
	f := d.decode(b.build(doc.body, 0), path)
	if d.count > 0 {
		return nil, d.faults.sorted(d.count)
	}
	f.Warnings = d.warnings.sorted(len(d.warnings))
	return f, nil
}

// decode reads the sections.
func (d *decoder) decode(root *node, file string) *File {
	out := defaults()
	out.Path = file
	if root.kind != mapping {
		d.fault(root.pos, "the file is "+root.kind.String(), "want a mapping with "+strings.Join(topKeys, ", "))
		return out
	}
	f := d.section(root, path{}, root.pos)
	d.redis(f.node("redis"), &out.Redis, f.pos("redis"))
	d.web(f.node("web"), &out.Web, f.pos("web"))
	d.worker(f.node("worker"), &out.Worker, f.pos("worker"))
	d.queues(f.node("queues"), out.Queues, f.pos("queues"))
	d.fetch(f.node("fetch"), &out.Fetch, f.pos("fetch"))
	out.Quotas = d.quotas(f.node("quotas"), f.pos("quotas"))
	out.Pools = d.pools(f.node("pools"), f.pos("pools"))
	out.Feeds = d.feeds(f.node("feeds"), f.pos("feeds"), out.Quotas, out.Pools)
	f.done(nil)
	if !out.Fetch.AllowPrivate {
		d.warnPrivate(out.Feeds)
	}
	out.anchor(filepath.Dir(file))
	return out
}

// anchor makes the file's relative names relative to its own directory, so
// that every process that reads it means the same, wherever it was started.
func (f *File) anchor(dir string) {
	for _, name := range []*string{&f.Redis.Data, &f.Web.TLS.Cert, &f.Web.TLS.Key} {
		*name = neighbour(dir, *name)
	}
	for i := range f.Pools {
		f.Pools[i].List = neighbour(dir, f.Pools[i].List)
	}
	for i := range f.Feeds {
		f.Feeds[i].Sinks = slices.Clone(f.Feeds[i].Sinks) // feeds of one entry share them
		for j := range f.Feeds[i].Sinks {
			f.Feeds[i].Sinks[j].File = neighbour(dir, f.Feeds[i].Sinks[j].File)
		}
	}
}

func neighbour(dir, name string) string {
	if name == "" || filepath.IsAbs(name) || strings.Contains(name, "://") {
		return name
	}
	return filepath.Join(dir, name)
}
