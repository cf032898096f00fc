package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
	"github.com/spf13/cobra"
)

// A shell that waits for suggestions waits no longer than it may, and hears nothing of why there are none.
func TestSuggestionsThatDoNotComeInTimeAreNone(t *testing.T) {
	path := t.TempDir() + "/store.db"
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := &app{stdout: io.Discard, stderr: io.Discard, store: path, env: func(name string) string {
		return map[string]string{suggestEnv: "20ms"}[name]
	}}
	over := make(chan struct{})
	stuck := a.suggest(func(ctx context.Context, _ store.Store, to *suggestions) error {
		to.add("never", "seen")
		<-over // whatever its context says
		return ctx.Err()
	})
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	began := time.Now()
	words, directive := stuck(cmd, nil, "")
	close(over)
	if len(words) > 0 || directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("%q, %d", words, directive)
	}
	if took := time.Since(began); took > 10*time.Second { // far above, on a busy machine too
		t.Errorf("it took %s", took)
	}
}

// What a store has too much of is cut, and what nobody could type is left out.
func TestSuggestionsAreFewAndCanBeTyped(t *testing.T) {
	s := &suggestions{begun: "a", words: map[string]string{}}
	for i := range 2 * suggestMost {
		s.add("a"+strings.Repeat("x", i), "topic\twith a tab")
	}
	s.add("a\nb", "topic")
	s.add("a\x1b[2J", "topic")
	s.add("b", "topic")
	got := completions(s.words)
	if len(got) != suggestMost || !slices.IsSorted(got) {
		t.Errorf("%d words", len(got))
	}
	for _, word := range got {
		if strings.Count(word, "\t") != 1 || strings.ContainsAny(word, "\n\x1b") || !strings.HasPrefix(word, "a") {
			t.Errorf("%q", word)
		}
	}
}

// No store is made, and nothing is said, by a shell that asks.
func TestAskingForSuggestionsIsSilent(t *testing.T) {
	var out, errout bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errout, env: func(string) string { return "" }}
	if code := execute(t.Context(), a, []string{"__complete", "topics", "--store", "/nowhere/store.db", ""}); code != 0 || errout.Len() > 0 {
		t.Errorf("exit code %d, %q", code, errout.String())
	}
}
