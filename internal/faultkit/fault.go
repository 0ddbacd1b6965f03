package faultkit

import (
	"net/http"
	"time"
)

// Fault is how a proxy fails.
type Fault string

// The faults. "In mid-answer" is after the bytes that Fail is told, counted on
// each client's connection from its first one under the fault; of an https
// proxy the bytes of TLS count too.
const (
	NoFault   Fault = ""
	Gone      Fault = "gone"       // nobody listens: connections are refused
	Drop      Fault = "drop"       // connections are closed as they come
	Hang      Fault = "hang"       // what comes in is never answered
	Auth      Fault = "auth"       // every login is refused: 407, or socks5's refusal
	Refuse    Fault = "refuse"     // no connection to any target: 502, or socks5's "connection refused"
	Mute      Fault = "mute"       // the target is reached, and nothing comes back from it: a hang after CONNECT
	Garbage   Fault = "garbage"    // what is answered belongs to no protocol
	Reset     Fault = "reset"      // connections are reset in mid-answer
	HalfClose Fault = "half-close" // our side of connections ends in mid-answer
	Drip      Fault = "drip"       // from mid-answer on, a byte every DripPause
	WrongCert Fault = "wrong-cert" // in the middle of TLS, with a certificate of an authority that nobody trusts
	Inject    Fault = "inject"     // a page of the proxy's own in place of every answer; in TLS as WrongCert
	Alter     Fault = "alter"      // every body gets InjectedText at its end; in TLS as WrongCert
	Reveal    Fault = "reveal"     // requests that the proxy reads get headers that name the client
)

// Faults are all of them but NoFault.
var Faults = []Fault{Gone, Drop, Hang, Auth, Refuse, Mute, Garbage, Reset, HalfClose, Drip, WrongCert, Inject, Alter, Reveal}

// DripPause is the time between two bytes of Drip.
const DripPause = 20 * time.Millisecond

// InjectedPage is what Inject answers, and InjectedText what Alter adds.
const (
	InjectedPage = "<!doctype html><title>Welcome</title><p>Log in to this network first."
	InjectedText = `<script src="http://ads.invalid/a.js"></script>`
)

// Stats are a proxy's counters since it started.
type Stats struct {
	Connections  int64 // accepted
	Open         int   // of these, open now
	Requests     int64 // passed on in absolute form
	Tunnels      int64 // opened by CONNECT, of either kind
	AuthFailures int64
	Failures     int64 // targets that could not be reached
}

// Seen is one thing that a client asked of a proxy.
type Seen struct {
	Method string // GET, CONNECT, …; "socks5" for a connection, "login" for a socks5 login
	Target string // the URL, or host:port
	Header http.Header
	// User and Password are what the client said, right or wrong.
	User, Password string
}

// seenKept bounds what a proxy or target remembers.
const seenKept = 10_000
