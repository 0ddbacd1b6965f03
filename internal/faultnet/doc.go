// Package faultnet is a network between a client and its servers that a test can
// break. A [Net] stands before any number of servers; each is reached over a wire
// of its own, and all wires obey the same switches.
//
// A lost reply is the fault it is made for: the request was carried to the server,
// the server did it and answered, and the connection breaks as the answer
// arrives, or in the midst of it. The client cannot tell whether it was done.
// Besides, a Net can hold replies back, swallow what it is given, and be down.
package faultnet
