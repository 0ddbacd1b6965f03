// Package testredis starts real redis-server processes for tests: one server
// ([Own], [Client]), one that listens on TCP ([TCP]), asks for a certificate
// ([TLS]), a user ([ACL]), or has another clock ([OffClock]), a primary with a
// replica and three Sentinels ([Sentinel]), and a Cluster of three nodes
// ([Cluster]). All of them listen on loopback, on ports that were free, and end
// with the test that began them.
//
// A machine without redis-server fails the test: what a script does is known
// only on the server it is written for.
package testredis
