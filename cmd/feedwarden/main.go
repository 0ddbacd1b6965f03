// Command feedwarden keeps scheduled feeds fresh without overrunning an API
// budget. One binary has every role: serve, worker, scheduler, web, and the
// commands that look and act.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends it in good order; a second one ends it at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program: it answers the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	var cli CLI
	env := newEnv(ctx, in, out, errOut)
	exited, code := false, 0
	parser, err := newParser(&cli, out, errOut, func(c int) { exited, code = true, c })
	if err != nil {
		fmt.Fprintln(errOut, "feedwarden:", err)
		return exitFailed
	}
	env.model = parser.Model
	k, err := parser.Parse(typed(args))
	if exited {
		return code
	}
	if err != nil {
		var pe *kong.ParseError
		if errors.As(err, &pe) && pe.Context != nil {
			command, _, _ := strings.Cut(pe.Context.Command(), " <") // without its arguments
			fmt.Fprintf(errOut, "feedwarden: %v\nTry: %s --help\n", err, strings.TrimSpace("feedwarden "+command))
		} else {
			fmt.Fprintf(errOut, "feedwarden: %v\n", err)
		}
		return exitUsage
	}
	env.configure(&cli)
	err = k.Run(env, &cli)
	return env.exitCode(err)
}

func newParser(cli *CLI, out, errOut io.Writer, exit func(int)) (*kong.Kong, error) {
	return kong.New(cli,
		kong.Name("feedwarden"),
		kong.Description("Keeps scheduled feeds fresh without ever overrunning an API budget."),
		kong.UsageOnError(),
		kong.Writers(out, errOut),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.Exit(exit),
	)
}

// typed puts what people type into what the parser knows.
func typed(args []string) []string {
	args = waitFlag(args)
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(args[1:], "--help")
	case len(args) == 1 && args[0] == "--version":
		return []string{"version"}
	}
	return args
}
