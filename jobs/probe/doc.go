// Package probe finds out what a proxy is worth before it serves, and keeps the
// pools' lists fresh.
//
// # A check
//
// A check asks a judge for its answer through the endpoint. The judge is the
// web role's /judge, or another Feedwarden's; it says back the nonce it was
// given, the address it was asked from and the headers it saw. The pool's
// Require is held against the Verdict by allocation, not here.
//
//	directly once       does the judge answer, and how do we look to it without a proxy?
//	through the endpoint, within one time limit:
//	  1  its answer     protocol, login, TLS to an https judge, latency, exit, what is revealed
//	  2  its page       whether content is altered: every byte of it is known
//	  3  a tunnel       an http judge behind an http proxy: whether CONNECT works
//
// The judge is authoritative for what it saw, this package for what that means.
// Where the judge does not answer directly nothing is checked: its absence must
// not be held against the endpoints. A judge that says "later" (429) is asked again.
//
// # A list
//
// A list at a web address is fetched directly, under the same rules as a feed's
// target, with the validators of its last answer. Any failure leaves the pool as
// it is: see Lists.
//
// Keys: fw:{list:POOL}:fetched, a HASH of what the last fetch of a pool's list found.
package probe
