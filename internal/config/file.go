package config

import (
	"time"

	"feedwarden/jobs/source"
)

// File is a whole config: the file's values, and the defaults of the rest.
type File struct {
	Path     string
	Redis    RedisConfig
	Web      WebConfig
	Worker   WorkerConfig
	Queues   map[string]QueueConfig // "interactive" and "scheduled", always both
	Fetch    FetchConfig
	Quotas   []Quota // sorted by name
	Pools    []Pool  // sorted by name
	Feeds    []Feed  // `each` expanded, sorted by name
	Warnings Faults  // what is allowed but can hardly be meant
}

// RedisConfig says where the state lives.
type RedisConfig struct {
	URL  Value  // "embedded", or a URL that may hold a password
	Data string // the embedded server's directory; a relative one is the config file's neighbour
}

// WebConfig is for the web role.
type WebConfig struct {
	Listen   string
	Tokens   []Token
	Hosts    []string
	Insecure bool
	BasePath string // "/", or a path that does not end in one
	TLS      TLS
	Judge    string // public URL of a judge; "" is our own, by its local address
}

// Token lets a program or a person in.
type Token struct {
	Name  string
	Token Secret
	Role  string // read, write or admin
}

// TLS names the files of a certificate and its key; both empty: none.
type TLS struct {
	Cert, Key string
	Pos       Pos // where it stands: whether the files fit shows later
}

// WorkerConfig is for the worker role.
type WorkerConfig struct {
	Concurrency      int
	InteractiveSlots int
	Shutdown         time.Duration
}

// QueueConfig bounds a queue: beyond Limit it refuses.
type QueueConfig struct{ Limit int64 }

// FetchConfig is for all fetches.
type FetchConfig struct {
	UserAgent    string
	Timeout      time.Duration
	MaxBody      int64 // decoded bytes
	AllowPrivate bool
	AllowHosts   []string // empty: all
	PerHost      PerHost
	PerSource    map[string]int // jobs of a source at a time, by its kind; absent: no limit
	Robots       bool
}

// PerHost is the politeness towards one host, shared by all workers.
type PerHost struct {
	Delay   time.Duration
	Running int
}

// Quota is a named budget: an entry of the file, or one bucket of an entry's preset.
type Quota struct {
	Name    string // of a bucket: ENTRY:BUCKET
	Pos     Pos
	Preset  string // where the costs of methods come from, or ""
	Bucket  string // of the preset, that this one is besides its entry's own; "" is the entry
	Windows []Window
	Reserve int64
	Running int // jobs at a time; 0: no limit
	Grace   time.Duration
}

// Window is one limit of a quota: trailing (Per) or of the calendar.
type Window struct {
	Limit    int64
	Per      time.Duration
	Calendar string         // "day", or ""
	Location *time.Location // of a calendar window
}

// Pool is a set of endpoints and the rule that picks one.
type Pool struct {
	Name         string
	Pos          Pos
	Policy       string
	Alone        string
	Start        string // floor, zero, or a number
	Cap          int
	Lease        time.Duration
	Gateway      bool
	Require      *Require // nil: what is imported is active at once
	Quarantine   Quarantine
	List         string        // a file; a relative one is the config file's neighbour
	ListPos      Pos           // where the list is named: whether it can be read shows later
	ListURL      Value         // a list at a web address; it may hold a password or a key
	ListEvery    time.Duration // how often that one is fetched
	ListFormat   string        // auto or user-first, of every list that the pool takes in
	AllowPrivate bool
}

// Require is what a candidate must show before it serves.
type Require struct {
	HTTPS      bool
	MaxLatency time.Duration // 0: any
	Anonymous  bool
	Every      time.Duration // how often all endpoints are checked
}

// Quarantine is for how long a failing endpoint is left out.
type Quarantine struct {
	Base, Max        time.Duration
	BlameTargetAbove float64 // the share of failing endpoints above which the target is blamed
}

// Feed is one feed: an entry of the file, or one of those that `each` makes of it.
type Feed struct {
	Name  string
	Entry string            // the entry's name
	Index int               // the place within the entry's feeds, from 0
	Of    int               // how many feeds the entry has
	Each  map[string]string // the values of this one; nil without `each`
	Pos   Pos

	Source  string // youtube, syndication, json, html, push
	Method  string
	Key     Secret
	BaseURL Value
	URL     Value
	Params  map[string]Value
	Headers map[string]Value
	Pages   int               // at most so many; 0: to the end
	Items   string            // jq for json, CSS for html
	Map     map[string]string // field of an item → expression
	Paging  *Paging
	Next    *NextPage
	Ban     *source.BanSigns // nil: none are known
	fromEnv []Value          // what the environment gave to url, base_url, params and headers

	Schedule string // "" is fetched by hand or by a reader
	Timezone string
	Jitter   time.Duration
	Overlap  string
	CatchUp  CatchUp
	Spread   time.Duration

	Quota     string // "" is charged to none
	Cost      int64  // units a request
	Pool      string // Direct, Environment, or one of the file's
	Attempts  int
	MaxSnooze time.Duration
	Expires   time.Duration // 0: never
	History   int
	Sinks     []Sink
	TTL       time.Duration
	TTLGiven  bool // the file says it; else it is the default
}

// CatchUp says which ticks run that were missed while no scheduler was up.
type CatchUp struct {
	Policy string // none, latest, all
	Within time.Duration
}

// How a source finds its next page: as the source itself takes it.
type (
	Paging      = source.Paging
	PageNumbers = source.PageNumbers
	NextPage    = source.NextPage
)

// Sink is one more place for results; one of File, Webhook, Stream, Stdout, S3 is set.
type Sink struct {
	File    string // a relative one is the config file's neighbour
	Webhook Value
	Secret  Secret // of the webhook's signature, or of the S3 key
	Stream  string
	Stdout  bool
	S3      Value
	Key     Secret // of S3
	Region  string // of S3
}

// DefaultUserAgent names nobody; a real one has a name and a contact.
const DefaultUserAgent = "example-feeds/1.0 (+https://example.org/contact)"

// The pools that are built in.
const (
	Direct      = "direct"      // no proxy
	Environment = "environment" // what HTTP_PROXY, HTTPS_PROXY and NO_PROXY say
)

// defaults is a file that gives nothing.
func defaults() *File {
	return &File{
		Redis:  RedisConfig{URL: NewValue("embedded", "embedded"), Data: "./feedwarden-data"},
		Web:    WebConfig{Listen: "127.0.0.1:8080", BasePath: "/"},
		Worker: WorkerConfig{Concurrency: 32, InteractiveSlots: 4, Shutdown: 20 * time.Second},
		Queues: map[string]QueueConfig{"interactive": {Limit: 1000}, "scheduled": {Limit: 100000}},
		Fetch: FetchConfig{
			UserAgent: DefaultUserAgent,
			Timeout:   30 * time.Second,
			MaxBody:   16 << 20,
			PerHost:   PerHost{Running: 8},
			Robots:    true,
		},
	}
}

func defaultQuota(name string) Quota {
	return Quota{Name: name, Grace: 30 * time.Second}
}

func defaultPool(name string) Pool {
	return Pool{
		Name: name, Policy: "least-used", Alone: "reuse", Start: "floor", Cap: 8, Lease: time.Minute,
		Quarantine: Quarantine{Base: 30 * time.Second, Max: time.Hour, BlameTargetAbove: 0.5}, ListEvery: time.Hour, ListFormat: "auto",
	}
}

const youtubeURL = "https://www.googleapis.com/youtube/v3"

func defaultFeed(name string) Feed {
	return Feed{
		Entry: name, Pages: 1, Timezone: "UTC", Overlap: "skip",
		CatchUp: CatchUp{Policy: "latest", Within: time.Hour},
		Cost:    1, Pool: Direct, Attempts: 5, MaxSnooze: 24 * time.Hour, History: 10, TTL: 20 * time.Minute,
	}
}
