// Package plan says, before anything runs, what schedules ask of their quotas:
// how many units an hour and in the fullest window, which ticks will be
// refused and until when they wait, how stale each feed gets, and what would fit.
//
// # How
//
// Every tick of the span is worked out as the scheduler would, by its zones'
// clocks, and handed to a quota.Ledger, which decides as the limiter does. A
// refused job sleeps until its promised instant and asks again, as a worker's
// would. Quotas do not touch one another, so each is simulated by itself.
//
//	ticks of the quota's feeds ──▶ overlap ──▶ charge, page by page ──▶ version
//	                                 │ busy        │ refused
//	                                 ▼             ▼
//	                              skipped       sleeps until promised, or fails by
//	                              or held       max_snooze, or expires
//
// # What is assumed
//
// The quotas are empty at the start, or as Config.Past says, and each feed was
// fetched at its last tick before it. Every fetch succeeds at once, so nothing is charged twice and no
// endpoint is missing. Nobody asks but the schedules: no reader, no script. A
// feed that reads to the end (pages: all) reads one page. Whoever waits for less
// than a second is said to wait for nothing.
//
// # What would fit
//
// All feeds of the quota are slowed alike: an evenly spaced schedule becomes an
// @every, of one with pauses (not at night) ticks are left out evenly. The
// least slowing is searched for under which nothing waits. Each candidate is
// simulated as it would run once it stands in the config, over the span and so
// far that every window fills and every feed has its turn, up to a bound of
// ticks: what is proposed for an hour holds for the day.
package plan
