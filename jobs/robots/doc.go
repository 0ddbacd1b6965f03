// Package robots reads robots.txt (RFC 9309), says whether a path may be asked
// for, and keeps what a host said, for all workers.
//
//	body ─▶ Parse(body, token) ─▶ Rules ─▶ Check(path) ─▶ Verdict{Allowed, Rule, Line}
//	answer ─▶ Judge ─▶ Kept ─▶ Store (Redis) ─▶ Kept.Verdict(path)
//
// What an answer means (section 2.3.1, and where it leaves a choice, the
// careful one):
//
//	2xx                     the rules of the file, for a day at most
//	redirect                followed up to five times; more count as 404
//	4xx, 429 aside          no rules: all is allowed, for a day
//	5xx, 429, no answer     all is disallowed for a short time: Retry-After, or a
//	                        minute that doubles to an hour, then asked again
//
// Only the first 500 KiB of a file count; an incomplete last line does not. A
// line that means nothing is skipped, and never voids another.
//
// The store holds what one product token needs of a file: the rules of its
// groups. Keys are fw:{robots:ORIGIN}:…, an origin being scheme, host and port.
// All have a time to live.
package robots
