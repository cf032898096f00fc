package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// oneForm are the commands that print one form alone: a story, a script or a schema.
func oneForm() []string { return []string{"demo", "completion", "schema", "help"} }

// Every command is run by a script, for people and for programs.
func TestEveryCommandHasAScriptForBothOutputs(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(string(text), "\n")...)
	}
	programs := regexp.MustCompile(`--json|-o (json|jsonl|csv)`)
	var check func(*cobra.Command, string)
	check = func(cmd *cobra.Command, above string) {
		for _, c := range cmd.Commands() {
			path := above + " " + c.Name()
			check(c, path)
			if c.Hidden || slices.Contains(oneForm(), c.Name()) {
				continue
			}
			run := regexp.MustCompile(`\bfoundling(-unproven)?` + path + `\b`)
			people := slices.ContainsFunc(lines, func(line string) bool { return run.MatchString(line) && !programs.MatchString(line) })
			others := slices.ContainsFunc(lines, func(line string) bool { return run.MatchString(line) && programs.MatchString(line) })
			if !people || !others {
				t.Errorf("foundling%s: run for people is %t, for programs %t", path, people, others)
			}
		}
	}
	check(newRoot(&app{env: func(string) string { return "" }}), "")
}
