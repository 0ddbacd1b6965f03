// Package demo is a small world on loopback: an upstream that answers like the
// YouTube Data API and serves an RSS feed, two http proxies and a socks5
// proxy. All of it is real code on real sockets; `feedwarden demo` and the
// integration tests use it.
//
//	client ─▶ http proxy ──┐
//	client ─▶ socks5 proxy ─┼─▶ Upstream: /youtube/v3/videos, /feed.xml
//	client ────────────────┘
//
// The upstream is authoritative for its own quota: it counts by itself, over a
// sliding window for each key, and refuses with quotaExceeded what goes
// beyond. Its charts are a function of seed, region and minute, so two worlds
// of one seed show the same.
//
// For tests each part can be told to fail: the upstream to hang, to be slow or
// to answer otherwise; the proxies as package faultkit says.
package demo
