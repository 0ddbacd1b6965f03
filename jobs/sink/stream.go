package sink

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// streamKept bounds a stream, roughly: Redis drops whole nodes.
	streamKept = 1000
	// streamInline is the size of items, in bytes of JSON, up to which they are in the entry.
	streamInline = 256 << 10
)

// add appends an entry: key, feed, version, fetched_at, count, and items; for
// those that are too large, omitted=1 stands in their place.
func (o *Outlet) add(ctx context.Context, stream string, d Delivery) error {
	var items bytes.Buffer
	doc := d.document()
	if err := encoder(&items).Encode(doc.Items); err != nil {
		return err
	}
	values := []any{
		"key", doc.Key, "feed", doc.Feed, "version", strconv.FormatInt(doc.Version, 10),
		"fetched_at", doc.FetchedAt.UTC().Format(time.RFC3339Nano), "count", strconv.Itoa(doc.Count),
	}
	if items.Len() <= streamInline {
		values = append(values, "items", strings.TrimSuffix(items.String(), "\n"))
	} else {
		values = append(values, "omitted", "1")
	}
	err := o.rdb.XAdd(ctx, &redis.XAddArgs{Stream: stream, MaxLen: streamKept, Approx: true, Values: values}).Err()
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return &Error{Permanent: true, Err: fmt.Errorf("the key holds something that is no stream")}
	}
	return err
}
