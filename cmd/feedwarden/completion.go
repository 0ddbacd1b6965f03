package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (c *completionCmd) Help() string {
	return `Read it into the shell, or put it where the shell looks:

    bash:  source <(feedwarden completion bash)
    zsh:   feedwarden completion zsh > "${fpath[1]}/_feedwarden"
    fish:  feedwarden completion fish > ~/.config/fish/completions/feedwarden.fish`
}

// Run writes a script that knows commands, subcommands and flags: it is made
// from the same model as --help.
func (c *completionCmd) Run(e *env) error {
	words := completionWords(e.model.Node)
	switch c.Shell {
	case "bash":
		return writeBash(e, words)
	case "zsh":
		fmt.Fprintln(e.out, "#compdef feedwarden\nautoload -U +X bashcompinit && bashcompinit")
		return writeBash(e, words)
	}
	return writeFish(e, words)
}

// node is one command and what can follow it.
type node struct {
	path  string // "quota charge"; "" is the program itself
	next  []string
	helps []string
	flags []string
}

func completionWords(n *kong.Node) []node {
	var out []node
	var walk func(n *kong.Node, path string)
	walk = func(n *kong.Node, path string) {
		c := node{path: path}
		for _, child := range n.Children {
			if child.Type == kong.CommandNode {
				c.next = append(c.next, child.Name)
				c.helps = append(c.helps, child.Help)
			}
		}
		for _, f := range n.Flags {
			c.flags = append(c.flags, "--"+f.Name)
		}
		out = append(out, c)
		for _, child := range n.Children {
			if child.Type == kong.CommandNode {
				walk(child, strings.TrimSpace(path+" "+child.Name))
			}
		}
	}
	walk(n, "")
	return out
}

func writeBash(e *env, words []node) error {
	fmt.Fprintln(e.out, `_feedwarden() {
  local cur="${COMP_WORDS[COMP_CWORD]}" path="" w i
  for ((i = 1; i < COMP_CWORD; i++)); do
    w="${COMP_WORDS[i]}"
    case "$w" in -*) ;; *) path="$path $w" ;; esac
  done
  while :; do
    case "$path" in`)
	for _, n := range words {
		prefix := ""
		if n.path != "" {
			prefix = " " + n.path
		}
		fmt.Fprintf(e.out, "      %q) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", prefix, strings.Join(append(append([]string{}, n.next...), n.flags...), " "))
	}
	_, err := fmt.Fprintln(e.out, `    esac
    case "$path" in *\ *) path="${path% *}" ;; *) return ;; esac
  done
}
complete -o default -F _feedwarden feedwarden`)
	return err
}

func writeFish(e *env, words []node) error {
	for _, n := range words {
		parts := strings.Fields(n.path)
		cond := "__fish_use_subcommand"
		if len(parts) > 0 {
			conds := make([]string, len(parts))
			for i, p := range parts {
				conds[i] = "__fish_seen_subcommand_from " + p
			}
			cond = strings.Join(conds, "; and ")
		}
		for i, next := range n.next {
			fmt.Fprintf(e.out, "complete -c feedwarden -f -n %q -a %s -d %q\n", cond, next, n.helps[i])
		}
		for _, f := range n.flags {
			if len(parts) == 0 {
				fmt.Fprintf(e.out, "complete -c feedwarden -l %s\n", strings.TrimPrefix(f, "--"))
			} else {
				fmt.Fprintf(e.out, "complete -c feedwarden -n %q -l %s\n", cond, strings.TrimPrefix(f, "--"))
			}
		}
	}
	return nil
}
