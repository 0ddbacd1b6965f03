// Package feed is the cache that people and programs read: for every feed its
// newest good version, the versions before it, and who waits for the next.
//
// Redis is authoritative. A feed's keys share one hash tag:
//
//	fw:{feed:KEY}:head      hash: the newest version's number, times, hash, validators and what they are for; the last error
//	fw:{feed:KEY}:data      hash: meta:N, items:N, raw:N of the versions kept
//	fw:{feed:KEY}:refresh   string: the job that refreshes this feed for readers; ends by itself
//	fw:{feed:KEY}:partial:JOB string: pages that a job has read before it stopped; ends by itself
//	fw:{feed:KEY}:tick      string: the last tick's job
//	fw:{feed:KEY}:aside     list: the last answers that were not taken, newest first; bounded, ends by itself
//	fw:{feed:KEY}:events    channel: "version N", "snoozed MS JOB", "failed JOB"
//
// KEY is the feed's name; a job with parameters of its own fills KEY
// "name?k=v&…", which ends a day after its last version.
//
// A version is replaced only by a fetch that began after the one it came from.
// An answer equal to the newest version makes no new one: it renews its age, as
// a 304 does. A failed fetch leaves everything but last_error as it was.
//
//	empty ──store──▶ fresh ──ttl──▶ stale ──refresh──▶ updating ──store──▶ fresh
//
// Copies hold versions in a process, in front of Redis: see there for what they
// promise. When Redis is away, reading fails once a copy's safety time is over;
// nothing is served from a guess.
package feed
