// Package fetch sends one GET through exactly one endpoint and reads the
// answer whole.
//
// The caller is authoritative for which endpoint is used and for conditional
// headers; this package for what may be reached, how long it may take, how
// much may come, and what an error says.
//
//	Do ─▶ check the target ─▶ endpoint's own transport ─▶ headers ─▶ body
//	          ▲                                             │
//	          └────────── redirect, checked again ◀─────────┘
//
// What holds:
//   - An endpoint has a transport of its own, in a bounded LRU. A request that
//     its endpoint cannot carry fails; it is never sent another way. Proxies
//     named in the environment are ignored, but by the endpoint that is the
//     environment's: it takes for each hop what HTTP_PROXY, HTTPS_PROXY and
//     NO_PROXY say of its URL.
//   - A target is refused by scheme, port, host list and address: a literal on
//     every hop, and the resolved address when there is no proxy. What a proxy
//     resolves is not seen here, so names that are private by their form
//     (localhost, single labels, .local, .internal) are refused as well.
//   - An endpoint that must be public is refused by the address that is dialled,
//     whatever its name meant when it was imported.
//   - A keyed request follows a redirect only within its own origin. Others
//     carry no more than harmless headers to another host, and no Referer ever.
//   - A request goes out once: it is sent again only when a kept connection
//     turned out closed before a byte of it was written.
//   - HTTP/1.1 alone is spoken: one connection carries one request, so an
//     outcome says something about the endpoint as it is now.
//   - Cut short, too big, too slow, or in an encoding nobody asked for, an
//     answer is an error, never a shorter body.
//
// Every failure is an *Error with a Kind. Its text, and that of all it wraps,
// holds no query, no user or password, no key.
package fetch
