package scheduler

import "sync/atomic"

// Stats counts what one Dispatcher has done since it was made. Times are in
// milliseconds.
type Stats struct {
	Schedules  int64 // configured
	Dispatched int64 // ticks that became jobs
	Skipped    int64 // ticks left out for overlap or a pause
	Missed     int64 // ticks too late to run
	Late       int64 // dispatched ticks more than a second late
	Manual     int64 // ticks dispatched by hand
	Full       int64 // refusals by a full queue
	Faults     int64 // failed calls to Redis or the Enqueuer
	Lateness   int64 // sum over dispatched ticks
	Peers      int64 // live dispatchers, this one too
}

type counters struct {
	dispatched, skipped, missed, late, manual, full, faults, lateness, peers atomic.Int64
}

// Stats reads the counters.
func (d *Dispatcher) Stats() Stats {
	d.mu.Lock()
	schedules := int64(len(d.plans))
	d.mu.Unlock()
	c := &d.counters
	return Stats{
		Schedules: schedules, Dispatched: c.dispatched.Load(), Skipped: c.skipped.Load(), Missed: c.missed.Load(), Late: c.late.Load(),
		Manual: c.manual.Load(), Full: c.full.Load(), Faults: c.faults.Load(), Lateness: c.lateness.Load(), Peers: c.peers.Load(),
	}
}
