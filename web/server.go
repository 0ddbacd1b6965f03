package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"feedwarden/allocation"
	"feedwarden/jobs"
	"feedwarden/jobs/feed"
	"feedwarden/quota"
)

// Readiness says whether the role runs; its error is shown to anybody, so it
// holds no secret.
type Readiness func(context.Context) error

// Parts are what the server asks.
type Parts struct {
	Redis redis.UniversalClient
	// Asynq makes the clients of asynqmon: each call one of its own, which Stop closes.
	Asynq     asynq.RedisConnOpt
	Jobs      *jobs.Client
	Feeds     *feed.Store
	Quotas    *quota.Limiter
	Leases    *quota.Leases // nil: who runs is not shown
	Pools     *allocation.Pools
	Schedules Schedules            // nil: there are none to show
	Forecast  Forecaster           // nil: nothing is known of what is to come
	Ready     Readiness            // nil: always
	Identity  func() RedisIdentity // nil: it is not known which Redis this is
	Log       *slog.Logger
}

// pace is how long a client may take.
type pace struct {
	header time.Duration // to send a header
	body   time.Duration // to send a body; of many jobs, a line
	write  time.Duration // to take an answer; of many jobs, a line
	idle   time.Duration // between two requests
	look   time.Duration // to be told what is asked: what Redis has not said by then is not waited for
}

var usualPace = pace{header: 10 * time.Second, body: 30 * time.Second, write: 30 * time.Second, idle: 2 * time.Minute, look: 8 * time.Second}

// maxHeader is what net/http is told; it adds 4 KiB of its own, which makes 16.
const maxHeader = 12 << 10

// Server is the web role of one process.
type Server struct {
	p       Parts
	cfg     Config
	log     *slog.Logger
	access  *access
	prefix  prefix
	hosts   hosts
	pace    pace
	pages   *pages
	monitor *monitor
	shots   *snapshots
	openapi openapi
	copies  *feed.Copies
	audit   *audit
	events  *events
	bulk    chan struct{} // a slot for each request of many jobs
	// judgePace bounds what the judge answers.
	judgePace *rate.Limiter
	handler   http.Handler
	tls       *certificate // nil: plain HTTP

	mu       sync.Mutex
	http     *http.Server
	listener net.Listener
	stopping context.Context // ends when Stop begins: readers that wait are sent away
	stop     context.CancelFunc
	died     chan error
}

// New makes a server; it does no I/O. Its error joins every fault of the config;
// ErrOpen is one of them.
func New(cfg Config, p Parts) (*Server, error) { return newServer(cfg, p, usualPace) }

func newServer(cfg Config, p Parts, pc pace) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		p: p, log: p.Log, access: newAccess(cfg.Tokens, newPrefix(cfg.BasePath)), prefix: newPrefix(cfg.BasePath), hosts: newHosts(cfg), pace: pc,
		bulk: make(chan struct{}, bulkAtOnce), died: make(chan error, 1), judgePace: newJudgePace(),
	}
	s.access.endings = endings{p.Redis, p.Log}
	cfg.Tokens = nil // from here on only their hashes are known
	s.cfg = cfg
	if cfg.TLS.set() {
		var err error
		if s.tls, err = newCertificate(cfg.TLS, s.log); err != nil {
			return nil, err
		}
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	var err error
	if s.pages, err = loadPages(); err != nil {
		return nil, err
	}
	if s.monitor, err = newMonitor(p.Asynq, p.Redis, s.prefix, pc.look); err != nil {
		return nil, err
	}
	if s.openapi, err = loadOpenAPI(s.prefix); err != nil {
		return nil, err
	}
	s.shots = newSnapshots(s)
	s.copies = feed.NewCopies(p.Feeds, feed.CopiesConfig{Encode: itemsJSON, Log: p.Log})
	s.audit = newAudit(p.Redis, p.Log)
	s.events = newEvents(s.shots)
	metrics, err := newMetrics(s.shots, cfg.Version, p.Identity)
	if err != nil {
		return nil, err
	}
	s.handler = s.prefix.enter(s.shield(router(s, routes(s, metrics))))
	return s, nil
}

// Handler serves without a listener of ours.
func (s *Server) Handler() http.Handler { return s.handler }

// Start binds the address and serves until Stop.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return errors.New("web: started already")
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("web: listen on %s: %w", s.cfg.Listen, err)
	}
	s.listener = l
	s.http = &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: s.pace.header,
		ReadTimeout:       s.pace.header + s.pace.body,
		WriteTimeout:      s.pace.header + s.pace.body + s.pace.write,
		IdleTimeout:       s.pace.idle,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	serve := s.http.Serve
	if s.tls != nil {
		s.http.TLSConfig = s.tls.config()
		server := s.http
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
		if what := s.tls.outOfDate(); what != "" {
			s.log.Warn("clients will refuse the certificate", "file", s.cfg.TLS.Cert, "because", what)
		}
	}
	s.log.Info("web server listens", "address", l.Addr().String(), "url", s.pageURL(l.Addr()), "tokens", len(s.access.keys))
	if s.access.open() && !reachedFromHere(l.Addr()) {
		s.log.Warn("no tokens are set: anybody who reaches this address may read and act", "address", l.Addr().String())
	}
	go func() {
		if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.died <- fmt.Errorf("web: serve: %w", err)
		}
		close(s.died)
	}()
	return nil
}

// pageURL is where a person on this machine finds the server: one that listens
// on every address is reached by loopback.
func (s *Server) pageURL(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return ""
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if s.tls != nil {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + string(s.prefix) + "/"
}

// reachedFromHere says that an address can be reached from this machine alone.
func reachedFromHere(a net.Addr) bool {
	host, _, err := net.SplitHostPort(a.String())
	return err == nil && loopback(host)
}

// Addr is where the server listens; nil before Start.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Died gives the error of a server that ended by itself, and is closed when it
// ends in any way.
func (s *Server) Died() <-chan error { return s.died }

// Stop lets requests that run end until ctx does, then cuts them. Twice is once.
func (s *Server) Stop(ctx context.Context) error {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []error
	if s.http != nil {
		if err := s.http.Shutdown(ctx); err != nil {
			all = append(all, fmt.Errorf("web: requests were cut: %w", err), s.http.Close())
		}
		all = append(all, <-s.died) // nil, unless it had ended by itself
		s.http = nil
	}
	s.copies.Close()
	s.p.Jobs.FlushReads() //nolint:contextcheck // bounded by itself: what clients read is written though ctx ends
	s.audit.close(ctx)
	all = append(all, s.monitor.close())
	return errors.Join(all...)
}
