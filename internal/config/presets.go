package config

import (
	"time"

	"feedwarden/jobs/source"
	"feedwarden/scheduler"
)

// bucketName is the quota of a preset's bucket: the default one is the entry
// itself. A colon stands in no name that a person may give.
func bucketName(entry, bucket string) string {
	if bucket == source.DefaultBucket {
		return entry
	}
	return entry + ":" + bucket
}

// buckets are the further quotas that an entry's preset makes. Grace, running
// limit and reserve are the entry's, each for every bucket by itself; a reserve
// that a bucket's limit does not exceed is not kept there.
func (q Quota) buckets() []Quota {
	var out []Quota
	for _, b := range source.Buckets(q.Preset) {
		if b.Name == source.DefaultBucket {
			continue
		}
		own := q
		own.Name, own.Bucket = bucketName(q.Name, b.Name), b.Name
		own.Windows = presetWindows(q.Preset, b.Name)
		if own.Reserve >= b.Limit {
			own.Reserve = 0
		}
		out = append(out, own)
	}
	return out
}

// presetWindows are a bucket's: any 24 hours, and the calendar day besides, which
// is what the provider counts: on a day of 25 hours the first alone would let the
// limit be spent twice.
func presetWindows(preset, bucket string) []Window {
	for _, b := range source.Buckets(preset) {
		if b.Name != bucket {
			continue
		}
		zone, err := scheduler.LoadZone(b.Zone)
		if err != nil {
			panic("config: the zone of preset " + preset + ": " + err.Error()) // the tables are built in
		}
		return []Window{{Limit: b.Limit, Per: 24 * time.Hour}, {Limit: b.Limit, Calendar: "day", Location: zone}}
	}
	return nil
}
