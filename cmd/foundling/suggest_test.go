package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// A name with a command in it was run by bash while it completed.
func TestWhatShellsRunIsNotSuggested(t *testing.T) {
	s := &suggestions{words: map[string]string{}}
	good := []string{"mail", "user:ann", "a-b_c.d/e@f+g,h", "größe", "邮件"}
	for _, word := range append(slices.Clone(good), "$(id)", "`id`", "a b", "a;b", "a|b", "a&b", "a>b", "a<b", "a'b", `a"b`, `a\b`, "a*", "a?", "[a]",
		"{a,b}", "~", "#a", "!a", "a^b", "a=b", "%1", "--yes", "-y", "a\u00a0b", "a\xff") {
		s.add(word, "topic")
	}
	var got []string
	for _, c := range completions(s.words) {
		got = append(got, strings.TrimSuffix(c, "\ttopic"))
	}
	slices.Sort(good)
	if !slices.Equal(got, good) {
		t.Errorf("%q, want %q", got, good)
	}
}

// The same with bash itself, where there is one.
func TestBashRunsNothingThatAStoreHolds(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	program, err := binaryPath()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, topic := range []string{"$(touch run1)", "$(touch run2)", "mail"} {
		a := &app{stdin: strings.NewReader("x\n"), stdout: io.Discard, stderr: io.Discard, env: func(name string) string {
			return map[string]string{"FOUNDLING_STORE": dir + "/store.db"}[name]
		}}
		if code := execute(t.Context(), a, []string{"enqueue", topic}); code != 0 {
			t.Fatal(code)
		}
	}
	cmd := exec.CommandContext(t.Context(), bash, "--norc", "--noprofile", "-c", `
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]}; words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; prev=${COMP_WORDS[COMP_CWORD-1]}; }
compopt() { :; }
source <(foundling completion bash)
COMP_WORDS=(foundling pause ''); COMP_CWORD=2 COMP_TYPE=9
COMP_LINE='foundling pause ' COMP_POINT=16
__start_foundling
printf '%s\n' "${COMPREPLY[@]}"
COMP_WORDS[2]=${COMPREPLY[0]}; COMP_TYPE=63
__start_foundling`)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"FOUNDLING_STORE="+dir+"/store.db", suggestEnv+"=20s")
	out, err := cmd.CombinedOutput()
	if !strings.Contains(string(out), "mail") {
		t.Errorf("it does not complete: %v\n%s", err, out)
	}
	if ran, err := filepath.Glob(dir + "/run*"); err != nil || len(ran) > 0 {
		t.Errorf("bash ran what the store holds: %q, %v\n%s", ran, err, out)
	}
}
