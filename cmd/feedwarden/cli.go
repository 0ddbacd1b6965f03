package main

import (
	"strings"

	"feedwarden/internal/units"
)

// CLI is the command line. The names of commands and flags are relied on by
// scripts.
type CLI struct {
	Config    string `help:"Config file; ./feedwarden.yaml by default." env:"FEEDWARDEN_CONFIG" type:"path" placeholder:"FILE"`
	JSON      bool   `name:"json" help:"One JSON object a line, as when standard output is no terminal."`
	LogLevel  string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info" env:"FEEDWARDEN_LOG_LEVEL"`
	LogFormat string `help:"text or json." enum:"text,json" default:"text" env:"FEEDWARDEN_LOG_FORMAT"`

	Demo demoCmd `cmd:"" group:"Run:" help:"Everything in one process, with no Redis, no internet, no config: see it work."`

	Serve     serveCmd     `cmd:"" group:"Run:" help:"All roles in one process: web, scheduler, worker."`
	Worker    workerCmd    `cmd:"" group:"Run:" help:"The worker role: does jobs."`
	Scheduler schedulerCmd `cmd:"" group:"Run:" help:"The scheduler role: turns ticks of the clock into jobs. Any number may run."`
	Web       webCmd       `cmd:"" group:"Run:" help:"The web role: API, dashboard, asynqmon, metrics."`

	Check     checkCmd     `cmd:"" group:"Look and act:" help:"Read the config and say every fault at once."`
	Plan      planCmd      `cmd:"" group:"Look and act:" help:"Before anything runs: what the schedules ask of the quotas, and how stale feeds get."`
	Try       tryCmd       `cmd:"" group:"Look and act:" help:"One fetch now: what was sent, what came, what was read, what it cost. Stores nothing."`
	Enqueue   enqueueCmd   `cmd:"" group:"Look and act:" help:"Ad-hoc jobs. 'enqueue -' reads one JSON object a line from standard input."`
	Jobs      jobsCmd      `cmd:"" group:"Look and act:" help:"List, get, cancel jobs."`
	Feeds     feedsCmd     `cmd:"" group:"Look and act:" help:"List feeds, print their content and history, put content, warm up."`
	Quota     quotaCmd     `cmd:"" group:"Look and act:" help:"Show, charge, refund, block quotas."`
	Proxies   proxiesCmd   `cmd:"" group:"Look and act:" help:"List, import, check, take, report, quarantine proxies."`
	Schedules schedulesCmd `cmd:"" group:"Look and act:" help:"List, pause, trigger schedules; the next instants of an expression."`

	Doctor     doctorCmd     `cmd:"" group:"Other:" help:"Check the running world: Redis, processes, queues, quotas, pools, schedules, feeds; each finding with what to do."`
	Version    versionCmd    `cmd:"" group:"Other:" help:"Print the version."`
	Completion completionCmd `cmd:"" group:"Other:" help:"Print a completion script for bash, zsh or fish."`
}

// waitFlag lets --wait stand alone or be followed by a duration: the flag
// library knows no optional values.
func waitFlag(args []string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(out, args[i:]...)
		}
		if a != "--wait" {
			out = append(out, a)
			continue
		}
		if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			if _, err := units.ParseDuration(args[i+1]); err == nil {
				out = append(out, "--wait="+args[i+1])
				i++
				continue
			}
		}
		out = append(out, "--wait="+defaultWait)
	}
	return out
}

const defaultWait = "5m"
