package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// deliverWithin bounds one try of one delivery.
const deliverWithin = time.Minute

// Outlet delivers. It is safe for concurrent use.
type Outlet struct {
	rdb    redis.UniversalClient
	http   http.RoundTripper
	now    func() time.Time
	mu     sync.Mutex // of stdout
	stdout io.Writer
}

// NewOutlet makes one. http must guard what it dials; stdout gets whole lines.
func NewOutlet(rdb redis.UniversalClient, http http.RoundTripper, stdout io.Writer) *Outlet {
	return &Outlet{rdb: rdb, http: http, stdout: stdout, now: time.Now}
}

// Deliver brings a version to one place, once. Every error is an *Error, but
// for that of a ctx that ended.
func (o *Outlet) Deliver(ctx context.Context, c Config, d Delivery) error {
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, deliverWithin, fmt.Errorf("it took longer than %s", deliverWithin))
	defer cancel()
	var err error
	switch c.Kind() {
	case "file":
		err = writeFile(c.File, d)
	case "webhook":
		err = o.post(ctx, c, d)
	case "stream":
		err = o.add(ctx, c.Stream, d)
	case "stdout":
		err = o.print(d)
	case "s3":
		err = o.put(ctx, c, d)
	default:
		err = &Error{Permanent: true, Err: errors.New("it names no place")}
	}
	if err == nil {
		return nil
	}
	if caller.Err() != nil {
		return caller.Err()
	}
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Err: err}
	}
	e.Kind, e.Place = c.Kind(), c.Place()
	return e
}
