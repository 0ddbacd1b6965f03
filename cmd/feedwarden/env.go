package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"feedwarden/internal/config"
)

// env is what every command gets: where to read and write, and the flags that
// all commands share.
type env struct {
	ctx    context.Context
	in     io.Reader
	out    io.Writer
	errOut io.Writer
	log    *slog.Logger
	model  *kong.Application

	configPath string
	json       bool // one JSON object a line, instead of a table
	colour     bool
	width      int
}

func newEnv(ctx context.Context, in io.Reader, out, errOut io.Writer) *env {
	return &env{ctx: ctx, in: in, out: out, errOut: errOut, log: slog.New(slog.DiscardHandler)}
}

func (e *env) configure(c *CLI) {
	e.configPath = c.Config
	tty, width := terminal(e.out)
	e.json = c.JSON || !tty
	e.width = width
	e.colour = fancy(e.out)
	e.log = newLogger(e.errOut, c.LogFormat, c.LogLevel)
}

// fancy says that colours and progress may be written: to a terminal, for
// somebody who has not asked for plain text.
func fancy(w io.Writer) bool {
	tty, _ := terminal(w)
	return tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func terminal(w io.Writer) (bool, int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false, 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 80
	}
	return true, width
}

func newLogger(w io.Writer, format, level string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// configFile is where the config is looked for.
func (e *env) configFile() string {
	if e.configPath == "" {
		return "feedwarden.yaml"
	}
	return e.configPath
}

// load reads the config file. A missing one is a wrong call, and the error
// says where it was looked for.
func (e *env) load() (*config.File, error) {
	path := e.configFile()
	f, err := config.Load(path, os.LookupEnv)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError("no config file: %s is not there; name one with --config FILE or $FEEDWARDEN_CONFIG, or start from one in examples/ of the source", path)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range f.Warnings {
		fmt.Fprintln(e.errOut, "feedwarden: warning:", w.String())
	}
	return f, nil
}

// quieter keeps a log's warnings and worse: a command that looks or acts has
// its result to print.
func quieter(log *slog.Logger) *slog.Logger {
	return slog.New(floor{log.Handler(), slog.LevelWarn})
}

type floor struct {
	slog.Handler
	least slog.Level
}

func (f floor) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= f.least && f.Handler.Enabled(ctx, l)
}
func (f floor) WithAttrs(a []slog.Attr) slog.Handler { return floor{f.Handler.WithAttrs(a), f.least} }
func (f floor) WithGroup(n string) slog.Handler      { return floor{f.Handler.WithGroup(n), f.least} }
