// Package sink is where a feed's versions go besides the cache: files, a
// webhook, a Redis stream, standard output, an S3-compatible store.
//
// A delivery is one version for one place. It happens at least once: whoever
// receives tells repetitions by the version key, "feed@version". A place that
// overwrites (a file, an object) has the same name and the same bytes each
// time, so there a repetition is not seen at all.
//
//	stored ─▶ queued ─▶ delivered
//	             │  ▲
//	             ▼  │ backoff, or the receiver's Retry-After
//	           failed, for a while or for good
//
// Package jobs is authoritative for when a delivery is tried and how often; the
// ledger, a hash of ours beside the feed's own keys, for how far each sink has
// come. A ledger that is behind the feed is how a crash between storing and
// queueing is noticed.
//
// What holds:
//   - A file is never torn under its final name: a hidden neighbour is written
//     under a lock, synced, and renamed. What a killed process left of one is
//     overwritten by the next try. A path stays below the part of it that has
//     no placeholder, whatever a feed is called and whatever links lie there.
//   - A webhook and a store are reached through the guard of package fetch:
//     private addresses are refused unless fetch.allow_private says otherwise.
//   - A secret goes into a signature and nowhere else. Errors name the place by
//     host or path, never by query, user or password.
//   - Versions come in order while nothing fails; a version that is tried again
//     may come after its successor. The number in the key says which is newer.
package sink
