package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/spf13/cobra"
)

const (
	// suggestFor is how long a shell waits for what might come next, unless suggestEnv says otherwise.
	suggestFor = 300 * time.Millisecond
	suggestEnv = "FOUNDLING_COMPLETION_WAIT"
	// suggestLooks is how many rows are looked at for it, and suggestMost how many words are given.
	suggestLooks = 5000
	suggestMost  = 100
)

// suggestions are the words that a row might be meant by.
type suggestions struct {
	begun string // what has been typed
	words map[string]string
}

// add takes a word that goes on from what has been typed, with what it is. One that is not plain is left out: shells run what stands in it, even
// while they complete it, and it comes from whoever may enqueue.
func (s *suggestions) add(word, what string) {
	if strings.HasPrefix(word, s.begun) && word == oneLine(word) && harmlessWord(word) {
		s.words[word] = what
	}
}

// harmlessWord reports whether no shell sees anything but a word in a text: no blank, quote, expansion, pattern, or flag.
func harmlessWord(word string) bool {
	for _, r := range word {
		ascii := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-:/@+,", r)
		if !ascii && !unicode.IsLetter(r) && !unicode.IsDigit(r) || r == unicode.ReplacementChar {
			return false
		}
	}
	return word != "" && word[0] != '-'
}

// suggest completes from the store that the command line names. Where that cannot be read, or not in time, it has no suggestion.
func (a *app) suggest(find func(context.Context, store.Store, *suggestions) error) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		wait, err := time.ParseDuration(a.env(suggestEnv))
		if err != nil {
			wait = suggestFor
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), wait)
		defer cancel()
		found := make(chan map[string]string, 1)
		go func() { // what does not end in time ends with the process
			s := &suggestions{begun: begun, words: map[string]string{}}
			_ = a.asked(ctx, func(st store.Store) error { return find(ctx, st, s) }) // what was found until then is good
			found <- s.words
		}()
		select {
		case words := <-found:
			return completions(words), cobra.ShellCompDirectiveNoFileComp
		case <-ctx.Done():
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// asked opens the store for a question that must not make or change anything.
func (a *app) asked(ctx context.Context, ask func(store.Store) error) error {
	s, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	return ask(s)
}

func completions(words map[string]string) []cobra.Completion {
	var list []cobra.Completion
	for word, what := range words {
		list = append(list, cobra.CompletionWithDesc(word, oneLine(what)))
	}
	slices.Sort(list)
	return list[:min(len(list), suggestMost)]
}

// rowsFor calls f with rows until enough were looked at.
func rowsFor(ctx context.Context, s store.Store, filter store.RowFilter, f func(store.Row) error) error {
	n := 0
	for row, err := range s.Rows(ctx, filter) {
		if n++; err != nil || n > suggestLooks {
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return nil
}

// topicNames completes topics: those that were configured, and those of open messages.
func (a *app) topicNames() cobra.CompletionFunc {
	return a.suggest(func(ctx context.Context, s store.Store, to *suggestions) error {
		err := rowsFor(ctx, s, store.RowFilter{Kind: events.KindTopic}, func(row store.Row) error {
			to.add(row.Entity.Name, "topic")
			return nil
		})
		if err != nil {
			return err
		}
		return rowsFor(ctx, s, store.RowFilter{Kind: events.KindMessage}, func(row store.Row) error {
			to.add(row.Topic, "topic")
			return nil
		})
	})
}

// lockNames completes locks: those that are out, and those that open messages want.
func (a *app) lockNames() cobra.CompletionFunc {
	return a.suggest(func(ctx context.Context, s store.Store, to *suggestions) error {
		n := 0
		for p, err := range s.Permits(ctx, store.PermitFilter{}) {
			if n++; err != nil || n > suggestLooks {
				return err
			}
			to.add(p.Lock, "held")
		}
		return rowsFor(ctx, s, store.RowFilter{Kind: events.KindMessage}, func(row store.Row) error {
			m, err := calls.Message(row)
			if err != nil || m.Lock == "" || to.words[m.Lock] != "" {
				return err
			}
			to.add(m.Lock, "waited for")
			return nil
		})
	})
}

// messageTails completes messages that have not ended, and dead letters, by the ends of their ids.
func (a *app) messageTails() cobra.CompletionFunc {
	return a.suggest(func(ctx context.Context, s store.Store, to *suggestions) error {
		what := map[events.ID]string{}
		err := rowsFor(ctx, s, store.RowFilter{Kind: events.KindMessage}, func(row store.Row) error {
			what[row.Entity.ID] = row.Topic + " · " + row.State.String()
			return nil
		})
		to.tails(what)
		return err
	})
}

// workerTails completes workers that have not stopped, by the ends of their ids.
func (a *app) workerTails() cobra.CompletionFunc {
	return a.suggest(func(ctx context.Context, s store.Store, to *suggestions) error {
		what := map[events.ID]string{}
		err := rowsFor(ctx, s, store.RowFilter{Kind: events.KindWorker}, func(row store.Row) error {
			p, err := peerOf(row)
			what[row.Entity.ID] = p.process.text() + " · " + row.State.String()
			return err
		})
		to.tails(what)
		return err
	})
}

// tails takes the ends of ids, as long as it takes to tell them apart.
func (s *suggestions) tails(what map[events.ID]string) {
	ids := make([]events.ID, 0, len(what))
	for id := range what {
		ids = append(ids, id)
	}
	s.begun = strings.ToLower(strings.TrimPrefix(s.begun, "…"))
	digits := max(shorten(int64(len(ids)), ids...).digits, min(len(s.begun), 32))
	for id, text := range what {
		s.add(tailOf(id, digits), text)
	}
}

// eventTypes completes types of events.
func eventTypes() cobra.CompletionFunc {
	var names []string
	for _, t := range events.Types() {
		names = append(names, t.String())
	}
	return fixed(names...)
}

// batches completes the batches that foundling run made.
func (a *app) batches(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	s := &suggestions{begun: begun, words: map[string]string{}}
	dir, err := a.batchDir()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, file := range files {
		if name, ok := strings.CutSuffix(file.Name(), ".db"); ok {
			s.add(name, "batch")
		}
	}
	return completions(s.words), cobra.ShellCompDirectiveNoFileComp
}

// topicOrFile completes a topic, and files behind it.
func (a *app) topicOrFile() cobra.CompletionFunc {
	topics := a.topicNames()
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return topics(cmd, args, begun)
		case 1:
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// topicsThenCommand completes topics, and files behind the dash.
func (a *app) topicsThenCommand() cobra.CompletionFunc {
	topics := a.topicNames()
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if slices.Contains(a.args, "--") { // cobra puts one behind the arguments itself, so that they cannot be asked
			return nil, cobra.ShellCompDirectiveDefault
		}
		return topics(cmd, args, begun)
	}
}
