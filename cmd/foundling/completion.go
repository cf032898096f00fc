package main

import (
	"errors"
	"io"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func newCompletion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the script with which a shell completes command lines",
		Long: "It completes commands, flags and their words, and the names that the store has: topics, workers, locks, messages and types of events.\n" +
			"For that it looks into the store that --store, --batch or $FOUNDLING_STORE names, for a moment, and says nothing where it cannot.\n" +
			"That moment is 300ms, or $FOUNDLING_COMPLETION_WAIT.",
		Example: "  source <(foundling completion bash)\n" +
			"  foundling completion zsh >\"${fpath[1]}/_foundling\"\n" +
			"  foundling completion fish >~/.config/fish/completions/foundling.fish\n" +
			"  foundling completion powershell | Out-String | Invoke-Expression",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []cobra.Completion{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := shellScript(cmd.Root(), a.raw.stdout, args[0]) // of ours alone, tabs and all
			if errors.Is(err, syscall.EPIPE) {
				return nil // nobody hears it any more
			}
			return err
		},
	}
}

// shellScript prints what a shell completes with.
func shellScript(root *cobra.Command, out io.Writer, shell string) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(out, true)
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	}
	return root.GenPowerShellCompletionWithDesc(out)
}

// completing reports whether a shell asks how a command line might go on.
func completing(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// complete has a flag's word completed.
func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // there is no such flag: that is a mistake in this program
	}
}

// fixed completes to one of some words.
func fixed(words ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var list []cobra.Completion
		for _, word := range words {
			if strings.HasPrefix(word, begun) {
				list = append(list, word)
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// once completes the first argument alone.
func once(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, begun)
	}
}
