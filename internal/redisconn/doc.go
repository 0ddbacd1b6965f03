// Package redisconn opens the one Redis that a process works with, whichever
// kind it is: a single server, TLS, behind Sentinel, a Cluster, or embedded.
//
// [New] only reads the URL; [Conn.Start] does the first I/O, and refuses a
// Redis that cannot be used with one error that says where, what, and what to
// do. No error, log line or [Conn.Where] ever holds a password.
//
// # Embedded
//
// The data directory says who owns the server:
//
//	DATA/owner.lock    flock of the owning process. It alone decides; its content is for people
//	DATA/server.lock   flock that the redis-server process inherits. While it is held, the old server
//	                   still has its files open, and nobody starts a second one on them
//	DATA/redis.json    the join file: how to reach the server. A hint, replaced as a whole, never trusted
//	DATA/redis/        the server's own directory: append-only file, socket, log
//
//	          lock free                    server ended
//	start ──────────────▶ owner ──▶ serve ◀──────────┐
//	  │ lock taken          ▲         └──────────────┘
//	  ▼                     │ lock becomes free
//	joiner ─────────────────┘
//
// The owner runs redis-server as a child on a unix socket, or, on a machine
// without one, miniredis inside itself on a loopback port with a password. A
// joiner reads the join file at each dial, so its clients find a new server by
// themselves, and it becomes the owner when the lock falls free.
//
// What happens on failure: an owner that is killed takes its server with it
// (the kernel's parent-death signal on Linux, a watching shell elsewhere) and
// leaves files that say nothing any more: the next start needs the lock alone.
// A server that dies is started again by its owner. With redis-server the
// append-only file keeps all data but, on a crash of the machine, the last
// second. With miniredis the data lives and dies with its process, which is
// said loudly.
//
// miniredis's clock is moved every 50 ms, so a key can expire up to that much early.
//
// # Sentinel
//
// Each new connection asks its server for its role and is dropped when that is
// a replica: after a failover a client cannot settle on the old primary, which
// cuts all its connections when it is demoted.
//
// # The guard
//
// No process writes to a replica, or to a primary that lacks what was written
// before. A process that lives long ([GuardAlways]) looks twice a second who
// answers and leaves a mark there, a number that grows; a server that it has
// not met is looked at before anything else goes over the new connection.
//
//	           mark found            mark missing: alarm
//	met ────────────────────▶ written ─────────────────▶ refused
//	                              ▲                         │
//	                              └── mark found again, ────┘
//	                                  or a person accepts
//
// The alarm is a key there (the one thing that is written), so every other
// process refuses too, and a new one does not start. Refused writes fail at once
// with a [RefusedError]; reads go on, after ten seconds without any connection
// in which writes that were under way give up. A loss that is shorter than the
// time since the last mark of every process, half a second, is not seen. On a
// Cluster new connections are not looked at, so a write may reach a shard within that half second.
// Data that an embedded miniredis held is not missed: it is known to live and die with its process.
package redisconn
