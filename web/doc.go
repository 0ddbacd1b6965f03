// Package web serves what people and programs see: the API under /v1, the
// dashboard, asynqmon at /monitor/, /metrics, /healthz and /readyz.
//
// It is authoritative for nothing. Jobs, feeds, quotas, pools and schedules
// belong to their packages; web asks them, and says what they said. Any number
// of web servers share a Redis, and none knows of the others: the cookie of one
// is good for all that have the same tokens. What is read most, the feeds, each
// holds a copy of: feed.Copies says what that promises.
//
// The road of a request, each step a file:
//
//	host ─▶ cross-origin ─▶ who, and their role ─▶ route ─▶ handler
//	 421        403              401, 403          404, 405, 406
//
// What fails, and what follows:
//   - Redis is away: 503 with Retry-After; /healthz stays 200, /readyz says why.
//     The dashboard shows what it can, and names what it cannot. A Redis that
//     takes what is sent and answers nothing is waited for eight seconds.
//   - A change is asked for then: Redis is asked first whether it answers, and where
//     it does not, nothing is begun. Of one that was begun and not answered it is
//     said that nobody knows; asked again with the same ID it is made once.
//   - The server is told to stop: readers that wait are sent away with 503, all
//     other requests end within the time that Stop is given.
//   - A client is slow, or sends too much: it is dropped, or told 413. One that listens
//     to more than its share makes room for others.
//   - A handler panics: 500 to this client; the process lives on.
//
// Each thing that somebody does leaves a line in the audit, a bounded stream in
// Redis: who, what, to what, when, and what came of it. Pages hear of changes by
// server-sent events: one loop reads for all of them, only while somebody listens.
//
// Errors are problem documents (RFC 9457). Nothing that is written here, be it
// a page, a metric or a line of the log, holds a token, a key or a password.
package web
