package sink

import (
	"strconv"
	"time"

	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
)

// Delivery is one version of one feed on its way.
type Delivery struct {
	Feed    string
	Version feed.Version
}

// Key is what a receiver tells repetitions by.
func (d Delivery) Key() string { return d.Feed + "@" + strconv.FormatInt(d.Version.Version, 10) }

// Document is a version as a webhook, standard output and a .json file have it.
type Document struct {
	Key       string        `json:"key"`
	Feed      string        `json:"feed"`
	Version   int64         `json:"version"`
	FetchedAt time.Time     `json:"fetched_at"`
	Count     int           `json:"count"`
	Items     []source.Item `json:"items"` // null where they are too large to be sent
	// Omitted says that the items are too large: they are to be read by the key.
	Omitted bool `json:"omitted,omitempty"`
}

func (d Delivery) document() Document {
	items := d.Version.Items
	if items == nil {
		items = []source.Item{}
	}
	return Document{Key: d.Key(), Feed: d.Feed, Version: d.Version.Version, FetchedAt: d.Version.FetchedAt, Count: len(items), Items: items}
}

// reference is the document without its items.
func (d Delivery) reference() Document {
	doc := d.document()
	doc.Items, doc.Omitted = nil, true
	return doc
}
