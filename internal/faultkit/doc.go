// Package faultkit is proxies and a target on loopback that record what they
// see and fail on demand.
//
//	client ─▶ Proxy (http, https, socks5) ─▶ Target (http, https)
//	              │ WrongCert, Inject, Alter      ▲
//	              └─────────▶ liar ───────────────┘
//
// A proxy is real code on a real socket. It serves well until Fail names a
// Fault; the fault holds for what comes from then on, connections that are kept
// included, until Fail names another.
//
// Each proxy leaves by a loopback address of its own, so a target tells the
// proxies apart as it would on the internet, and a connection that came from
// 127.0.0.1 came past them all: Target.Direct counts those.
//
// Nothing here imports testing: the demo runs these proxies too. What a test
// needs beyond is taken through the interface T, which *testing.T is one of.
package faultkit
