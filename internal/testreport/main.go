// Command testreport reads what `go test -json` prints on standard input and says what a person wants to know: failures whole and
// at once, the slowest tests, what was left out, and the count. It ends with 1 unless tests ran and all of them passed.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"strings"
)

// long lists the tests that may skip themselves unless the long tests are asked for, one "package Test" a line.
//
//go:embed long.txt
var long string

// lacking lists the tests that are skipped since what is tested lacks what they need, in the same form.
//
//go:embed lacking.txt
var lacking string

func main() {
	var o options
	flag.StringVar(&o.engines, "engines", "", "the engines the tests were told to run on, with commas")
	flag.BoolVar(&o.long, "long", false, "the long tests were asked for: then none may be skipped")
	flag.StringVar(&o.leave, "leave", "", "what may be missing: tests that say that they need it may be skipped")
	flag.BoolVar(&o.part, "part", false, "only some tests were asked for: the lists of what may be skipped need not be met")
	checks := flag.String("failed", "", "the checks before the tests that failed, with commas")
	flag.Parse()
	o.checks = strings.FieldsFunc(*checks, func(r rune) bool { return r == ',' })
	o.mayWait, o.mayLack = parseList(long), parseList(lacking)

	r := newReport(os.Stdout, o)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !r.finish() {
		os.Exit(1)
	}
}

// parseList reads a list of tests; "#" begins a comment.
func parseList(text string) map[string]bool {
	tests := map[string]bool{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if name := strings.Join(strings.Fields(line), " "); name != "" {
			tests[name] = true
		}
	}
	return tests
}
