package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"feedwarden/allocation"
	"feedwarden/internal/config"
	"feedwarden/internal/redisconn"
	"feedwarden/jobs"
	"feedwarden/jobs/probe"
	"feedwarden/quota"
	"feedwarden/scheduler"
	"feedwarden/web"
)

// Exit codes; scripts rely on them.
const (
	exitDone    = 0
	exitFailed  = 1  // the reason is on standard error
	exitUsage   = 2  // the call or the config is wrong
	exitOver    = 3  // plan, check: the config is well formed but cannot keep its promises
	exitRefused = 75 // for now: quota, full queue, no eligible endpoint
)

// exitError ends the program with a code of its own. A nil err has said all
// there is to say already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode prints what went wrong and answers the code for it.
func (e *env) exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	var faults config.Faults
	if errors.As(err, &faults) {
		fmt.Fprintln(e.errOut, faults.Error())
		return exitUsage
	}
	var ee *exitError
	if errors.As(err, &ee) {
		if ee.err != nil {
			say(e.errOut, ee.err)
		}
		return ee.code
	}
	if errors.Is(err, context.Canceled) && e.ctx.Err() != nil {
		fmt.Fprintln(e.errOut, "feedwarden: interrupted")
		return exitFailed
	}
	say(e.errOut, err)
	return codeOf(err)
}

func say(w io.Writer, err error) {
	fmt.Fprintln(w, "feedwarden:", strings.TrimSpace(err.Error()))
}

// codeOf sorts an error: is the call wrong, is it refused for now, or did it fail?
func codeOf(err error) int {
	var (
		unknownFeed *jobs.UnknownFeedError
		spec        *jobs.SpecError
		impossible  *quota.ImpossibleError
		expression  *scheduler.ExpressionError
		full        *jobs.FullError
		empty       *allocation.EmptyError
		notReady    *jobs.NotReadyError
		later       *web.RefusedError
		redisURL    *redisconn.URLError
	)
	switch {
	case errors.As(err, &unknownFeed), errors.As(err, &spec), errors.As(err, &impossible), errors.As(err, &expression), errors.As(err, &redisURL),
		errors.Is(err, quota.ErrUnknownQuota), errors.Is(err, quota.ErrCost), errors.Is(err, quota.ErrSpan), errors.Is(err, allocation.ErrUnknownPool),
		errors.Is(err, probe.ErrNoJudge), errors.Is(err, web.ErrCertificate), errors.Is(err, web.ErrUnknownSchedule), errors.Is(err, scheduler.ErrUnknownSchedule), errors.Is(err, scheduler.ErrZone), errors.Is(err, scheduler.ErrRange), errors.Is(err, quota.ErrID), errors.Is(err, quota.ErrLabel):
		return exitUsage
	case errors.As(err, &full), errors.As(err, &empty), errors.As(err, &notReady), errors.As(err, &later):
		return exitRefused
	}
	return exitFailed
}
