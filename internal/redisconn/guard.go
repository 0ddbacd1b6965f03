//go:build unix

package redisconn

import (
	"os"
	"os/exec"
)

// guardScript runs the server and ends it when descriptor 4 closes: the other
// end of that pipe is the owner's, and closes with it, however it ends. The
// shell lives as long as the server.
const guardScript = `
trap : TERM
"$@" 4<&- & server=$!
{ cat <&4 >/dev/null; kill -TERM "$server" 2>/dev/null; } 3<&- & watch=$!
exec 3<&- 4<&-
while kill -0 "$server" 2>/dev/null; do wait "$server"; done
kill "$watch" 2>/dev/null
`

// guard puts the shell between us and the server. end is the pipe's far end.
func guard(cmd *exec.Cmd, end *os.File) {
	const shell = "/bin/sh"
	cmd.Args = append([]string{shell, "-c", guardScript, shell, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = shell
	cmd.ExtraFiles = append(cmd.ExtraFiles, end)
}
