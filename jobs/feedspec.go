package jobs

import (
	"time"

	"feedwarden/jobs/sink"
	"feedwarden/jobs/source"
)

// The pools that are built in.
const (
	Direct      = "direct"      // no proxy
	Environment = "environment" // what HTTP_PROXY, HTTPS_PROXY and NO_PROXY say
)

func builtIn(pool string) bool { return pool == Direct || pool == Environment }

// Feed is one feed as its jobs need it.
type Feed struct {
	Name   string
	Source source.Config
	Quota  string // "" charges none
	Cost   int64  // units a request takes
	// QuotaRunning is how many jobs of the quota may run at a time; 0 is no limit.
	QuotaRunning int64
	Pool         string // Direct, Environment, or a pool's name
	// Robots asks the host's robots.txt before each request, and keeps to it.
	Robots    bool
	Attempts  int // real failures until the job has failed
	MaxSnooze time.Duration
	Expires   time.Duration // 0: never
	History   int           // versions kept
	TTL       time.Duration // 0: fresh for ever
	Schedule  string        // for pages; "" is fetched by hand or by a reader
	Timezone  string
	Sinks     []sink.Config // where its versions go besides the cache

	asked string // its source's fingerprint, from the catalog
}

// Pushed says that scripts fill the feed: nobody fetches it.
func (f Feed) Pushed() bool { return f.Source.Kind == "push" }

// Queues that jobs live in.
const (
	QueueInteractive = "interactive"
	QueueScheduled   = "scheduled"
)

// QueueSinks holds deliveries to sinks.
const QueueSinks = "sinks"

// queues are those of jobs that fetch; allQueues has that of the sinks too.
var (
	queues    = []string{QueueInteractive, QueueScheduled}
	allQueues = []string{QueueInteractive, QueueScheduled, QueueSinks}
)

// Config is what the package needs to know.
type Config struct {
	Feeds            []Feed
	QueueLimits      map[string]int64 // beyond it a queue refuses; 0: no limit
	Concurrency      int
	InteractiveSlots int
	Shutdown         time.Duration
	PerHost          PerHost
	PerSource        map[string]int64 // jobs of a source at a time, by its kind
	FetchTimeout     time.Duration    // what a fetch may take at most; leases and claims are longer
	SinkAttempts     int              // tries of one delivery to a sink; 0: 16, which is an hour and a half
}
