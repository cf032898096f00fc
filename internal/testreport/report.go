package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	module   = "github.com/foundling-go/foundling"
	slowest  = 10
	maxShown = 1 << 20 // bytes of one test's output that are kept; of a longer one its end
)

type options struct {
	engines string
	long    bool
	part    bool            // some tests alone: what the lists name need not be there
	leave   string          // what may be missing: a test may skip itself that says so; none if empty
	checks  []string        // failed before the tests
	mayWait map[string]bool // tests that may skip themselves unless long
	mayLack map[string]bool // patterns of tests that are skipped since what is tested lacks what they need
}

// event is a line of `go test -json` (go doc test2json, go help buildjson).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// test is a top-level test with what it and its subtests printed.
type test struct {
	output  []byte
	skipped []string // names below it, or its own, that skipped without leave
	waits   bool     // it or a subtest is left to the long tests
	leftOut string   // the test or subtest that last said that it is left out for what may be missing
}

// pkg is one package while its tests run.
type pkg struct {
	open   map[string]*test // begun and not ended
	output []byte           // of no test
	ran    int
	failed int
}

type timed struct {
	name    string
	elapsed time.Duration
}

// report adds up the events and prints what cannot wait.
type report struct {
	options
	out                     io.Writer
	pkgs                    map[string]*pkg
	times                   []timed
	suites                  int
	passed, failed, skipped int
	seen                    map[string]bool // of mayWait
	lacked                  map[string]int  // of mayLack, how many tests were skipped by it
	excused                 map[string]bool // of mayLack, which cannot be skipped since the test above is
	waiting, leftOut        int             // tests left to the long ones; tests and subtests left out for what may be missing
	goFailed                bool            // as ./test says when the go command has ended with a failure
}

func newReport(out io.Writer, o options) *report {
	return &report{options: o, out: out, pkgs: map[string]*pkg{}, seen: map[string]bool{}, lacked: map[string]int{}, excused: map[string]bool{}}
}

// read takes events until the input ends. A line that is no event is printed as it is.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(bytes.TrimSpace(line)) == 0:
		case json.Unmarshal(line, &e) != nil || e.Action == "":
			fmt.Fprintf(r.out, "%s\n", bytes.TrimRight(line, "\n"))
		default:
			r.add(e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
	}
}

func (r *report) add(e event) {
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Action == "go-test-failed":
		r.goFailed = true
	case e.Package == "":
	case e.Test == "":
		r.addPackage(e)
	default:
		r.addTest(e)
	}
}

func (r *report) pkg(name string) *pkg {
	p := r.pkgs[name]
	if p == nil {
		p = &pkg{open: map[string]*test{}}
		r.pkgs[name] = p
	}
	return p
}

func (r *report) addTest(e event) {
	top, _, sub := strings.Cut(e.Test, "/")
	p := r.pkg(e.Package)
	t := p.open[top]
	if t == nil {
		t = &test{}
		p.open[top] = t
	}
	switch e.Action {
	case "output":
		if !frame(e.Output) {
			t.output = keep(t.output, e.Output)
		}
		if r.leave != "" && strings.HasSuffix(strings.TrimSpace(e.Output), ": left out: "+r.leave) {
			t.leftOut = e.Test
		}
	case "skip":
		r.skip(t, e)
	}
	if sub {
		r.see(e)
		return
	}
	switch e.Action {
	case "pass", "fail", "skip":
		r.see(e)
		r.times = append(r.times, timed{short(e.Package) + " " + e.Test, time.Duration(e.Elapsed * float64(time.Second))})
		delete(p.open, top)
		r.end(p, t, e)
	}
}

// frame tells the lines by which the test runner says where it is.
func frame(line string) bool {
	return strings.HasPrefix(line, "=== RUN ") || strings.HasPrefix(line, "=== PAUSE ") || strings.HasPrefix(line, "=== CONT ") ||
		strings.HasPrefix(line, "=== NAME ")
}

// keep appends to a test's output and drops the beginning of what has become too long.
func keep(output []byte, more string) []byte {
	output = append(output, more...)
	if len(output) > 2*maxShown {
		output = append([]byte("(the beginning is left out)\n"), output[len(output)-maxShown:]...)
	}
	return output
}

// see notes that a test of the long list exists.
func (r *report) see(e event) {
	if name := short(e.Package) + " " + e.Test; r.mayWait[name] {
		r.seen[name] = true
	}
}

// skip notes a skipped test or subtest: a test of the long list waits, unless the long tests were asked for; one of the lacking list
// may, and one that says that it needs what may be missing.
func (r *report) skip(t *test, e event) {
	if t.leftOut == e.Test {
		r.leftOut++
		r.excuse(short(e.Package) + " " + e.Test)
		return
	}
	name := short(e.Package) + " " + e.Test
	for pattern := range r.mayLack {
		if ok, _ := path.Match(pattern, name); ok {
			r.lacked[pattern]++
			return
		}
	}
	top, _, _ := strings.Cut(e.Test, "/")
	listed := r.mayWait[name] || r.mayWait[short(e.Package)+" "+top]
	if listed && !r.long {
		t.waits = true
		return
	}
	t.skipped = append(t.skipped, e.Test)
}

// excuse takes back what the lists ask for below a test that is left out.
func (r *report) excuse(name string) {
	depth := strings.Count(name, "/")
	below := func(listed string) bool {
		parts := strings.Split(listed, "/")
		if len(parts) <= depth {
			return false
		}
		ok, _ := path.Match(strings.Join(parts[:depth+1], "/"), name)
		return ok
	}
	for listed := range r.mayWait {
		r.seen[listed] = r.seen[listed] || below(listed)
	}
	for pattern := range r.mayLack {
		r.excused[pattern] = r.excused[pattern] || below(pattern)
	}
}

// end counts a top-level test that has ended and shows it where it failed.
func (r *report) end(p *pkg, t *test, e event) {
	p.ran++
	switch {
	case e.Action == "fail":
		r.fail(p, "--- failed", e, t.output)
	case len(t.skipped) > 0:
		r.fail(p, "--- skipped without leave ("+strings.Join(t.skipped, ", ")+"; internal/testreport/long.txt and lacking.txt list what may)", e, t.output)
	case t.waits:
		r.skipped++
		r.waiting++
	case t.leftOut == e.Test:
		r.skipped++
	default:
		r.passed++
	}
}

func (r *report) fail(p *pkg, how string, e event, output []byte) {
	r.failed++
	p.failed++
	fmt.Fprintf(r.out, "%s: %s %s\n%s", how, short(e.Package), e.Test, output)
}

func (r *report) addPackage(e event) {
	p := r.pkg(e.Package)
	switch e.Action {
	case "output":
		p.output = keep(p.output, e.Output)
	case "pass", "fail", "skip":
		r.endPackage(p, e)
	}
}

// endPackage counts as failed the tests that had begun and never ended (a panic, a time-out, an exit), and a package that failed
// without any failed test (it did not build, its TestMain failed).
func (r *report) endPackage(p *pkg, e event) {
	delete(r.pkgs, e.Package)
	for _, name := range slices.Sorted(maps.Keys(p.open)) {
		p.ran++
		r.fail(p, "--- did not end", event{Package: e.Package, Test: name}, p.open[name].output)
	}
	if e.Action == "fail" {
		if p.failed == 0 {
			r.fail(p, "--- package failed", e, nil)
		}
		fmt.Fprintf(r.out, "%s", p.output)
	}
	if p.ran == 0 {
		return
	}
	r.suites++
	verdict := "ok  "
	if p.failed > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(r.out, "%s %-28s %4d tests %8.2fs\n", verdict, short(e.Package), p.ran, e.Elapsed)
}

// short is a package's path from the root.
func short(pkg string) string {
	if pkg == module {
		return "."
	}
	return strings.TrimPrefix(pkg, module+"/")
}

// finish prints the summary and tells whether all is well; its last line is the count, where nothing failed exactly if all is well.
func (r *report) finish() bool {
	for _, name := range slices.Sorted(maps.Keys(r.pkgs)) {
		r.endPackage(r.pkgs[name], event{Action: "fail", Package: name})
	}
	slices.SortStableFunc(r.times, func(a, b timed) int { return cmp.Compare(b.elapsed, a.elapsed) })
	fmt.Fprintf(r.out, "\nslowest:\n")
	for _, t := range r.times[:min(slowest, len(r.times))] {
		fmt.Fprintf(r.out, "%8.2fs %s\n", t.elapsed.Seconds(), t.name)
	}
	fmt.Fprintln(r.out)
	r.judge()
	fmt.Fprintf(r.out, "engines: %s · %d suites\n", strings.ReplaceAll(r.engines, ",", ", "), r.suites)
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	return r.failed == 0
}

// judge says what failed or was left out beside the tests that failed.
func (r *report) judge() {
	if r.failed == 0 && !r.part { // else it may have been kept from running
		r.judgeLists()
	}
	for _, check := range r.checks {
		r.failed++
		fmt.Fprintf(r.out, "failed before the tests: %s\n", check)
	}
	if r.goFailed && r.failed == 0 {
		r.failed++
		fmt.Fprintln(r.out, "the go command failed, and no test did")
	}
	if r.passed+r.failed+r.skipped == 0 {
		r.failed++
		fmt.Fprintln(r.out, "no test ran")
	}
	if r.waiting > 0 {
		fmt.Fprintf(r.out, "left to --long: %d\n", r.waiting)
	}
	if r.leftOut > 0 {
		fmt.Fprintf(r.out, "left out: %d (%s)\n", r.leftOut, r.leave)
	}
	lacked := 0
	for _, n := range r.lacked {
		lacked += n
	}
	if lacked > 0 {
		fmt.Fprintf(r.out, "subtests skipped for what an engine lacks: %d\n", lacked)
	}
}

// judgeLists fails what a list names in vain.
func (r *report) judgeLists() {
	for _, name := range slices.Sorted(maps.Keys(r.mayWait)) {
		if !r.seen[name] {
			r.failed++
			fmt.Fprintf(r.out, "internal/testreport/long.txt lists a test that is not there: %s\n", name)
		}
	}
	for _, pattern := range slices.Sorted(maps.Keys(r.mayLack)) {
		if r.lacked[pattern] == 0 && !r.excused[pattern] {
			r.failed++
			fmt.Fprintf(r.out, "internal/testreport/lacking.txt lists a test that was not skipped: %s\n", pattern)
		}
	}
}
