package main

import (
	"os/signal"
	"syscall"

	"go.uber.org/fx"
)

type (
	serveCmd     struct{}
	workerCmd    struct{}
	schedulerCmd struct{}
	webCmd       struct{}
)

func (serveCmd) Run(e *env) error     { return e.runRoles(allRoles) }
func (workerCmd) Run(e *env) error    { return e.runRoles(roles{worker: true}) }
func (schedulerCmd) Run(e *env) error { return e.runRoles(roles{scheduler: true}) }
func (webCmd) Run(e *env) error       { return e.runRoles(roles{web: true}) }

func (e *env) runRoles(r roles) error {
	// Who reads our log or our standard output may go away. Go would end the
	// process with the next line to it, and with it every job, reader and sink.
	signal.Ignore(syscall.SIGPIPE)
	w := newWatch(e.configFile())
	defer w.close()
	f, err := e.load()
	if err != nil {
		return err
	}
	s := translate(f)
	s.watch = w
	return runApp(e.ctx, fx.New(graph(s, e.log, r)))
}
