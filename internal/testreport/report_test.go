package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// stream writes events as `go test -json` does, from lines "PACKAGE TEST ACTION [OUTPUT]"; "-" is no test.
func stream(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		f := append(strings.SplitN(line, " ", 4), "")
		if f[1] == "-" {
			f[1] = ""
		}
		fmt.Fprintf(&b, "{%q:%q,%q:%q,%q:%q,%q:%q,%q:0.5}\n", "Package", module+"/"+f[0], "Test", f[1], "Action", f[2],
			"Output", f[3]+"\n", "Elapsed")
	}
	return b.String()
}

func TestReport(t *testing.T) {
	passes := stream("fsm TestA run", "fsm TestA output noise", "fsm TestA pass", "fsm - pass")
	tests := []struct {
		name    string
		input   string
		options options
		shows   []string // in this order
		hides   string
		last    string
	}{
		{name: "all pass", input: passes + stream("store TestB pass", "store - pass", "docs - skip"), options: options{engines: "memory,sqlite"},
			shows: []string{"ok   fsm", "1 tests", "slowest:", "0.50s fsm TestA", "engines: memory, sqlite · 2 suites\n"}, hides: "noise",
			last: "2 passed, 0 failed, 0 skipped"},
		{name: "a subtest fails", input: stream("fsm TestA/x run", "fsm TestA/x output === RUN   TestA/x", "fsm TestA/x output x is wrong",
			"fsm TestA/x fail", "fsm TestA fail", "fsm TestB pass", "fsm - output FAIL", "fsm - fail"),
			shows: []string{"--- failed: fsm TestA\nx is wrong\n", "FAIL fsm"}, hides: "=== RUN", last: "1 passed, 1 failed, 0 skipped"},
		{name: "a failure is said before the package ends", input: stream("fsm TestA output wrong", "fsm TestA fail", "fsm TestB pass"),
			shows: []string{"--- failed: fsm TestA\nwrong\n", "FAIL fsm"}, last: "1 passed, 1 failed, 0 skipped"},
		{name: "a test does not end", input: stream("fsm TestA run", "fsm TestA output panic: test timed out", "fsm TestB pass", "fsm - fail"),
			shows: []string{"--- did not end: fsm TestA\npanic: test timed out\n"}, last: "1 passed, 1 failed, 0 skipped"},
		{name: "a process leaves early with success", input: stream("fsm TestA run", "fsm - pass"),
			shows: []string{"--- did not end: fsm TestA\n"}, last: "0 passed, 1 failed, 0 skipped"},
		{name: "the stream breaks off", input: stream("fsm TestA pass", "store TestB run", "store TestB output half"),
			shows: []string{"--- package failed: fsm", "--- did not end: store TestB\nhalf\n"}, last: "1 passed, 2 failed, 0 skipped"},
		{name: "a package does not build", input: `{"ImportPath":"x","Action":"build-output","Output":"a.go:1:1: undefined: y\n"}` + "\n" +
			passes + stream("store - output FAIL store [build failed]", "store - fail"),
			shows: []string{"undefined: y\n", "--- package failed: store", "[build failed]"}, last: "1 passed, 1 failed, 0 skipped"},
		{name: "TestMain fails after the tests", input: stream("fsm TestA pass", "fsm - output cannot clean up", "fsm - fail"),
			shows: []string{"--- package failed: fsm", "cannot clean up\n"}, last: "1 passed, 1 failed, 0 skipped"},
		{name: "skipped without leave", input: stream("fsm TestA output why", "fsm TestA skip", "fsm TestB/x skip", "fsm TestB pass", "fsm - pass"),
			shows: []string{"without leave (TestA;", "fsm TestA\nwhy\n", "without leave (TestB/x;", "FAIL fsm"}, last: "0 passed, 2 failed, 0 skipped"},
		{name: "left to the long tests", input: passes + stream("store TestB skip", "store TestC/x skip", "store TestC pass", "store - pass"),
			options: options{mayWait: map[string]bool{"store TestB": true, "store TestC/x": true}},
			shows:   []string{"left to --long: 2\n"}, hides: "without leave", last: "1 passed, 0 failed, 2 skipped"},
		{name: "a long test skips although asked for", input: stream("store TestB skip", "store - pass"),
			options: options{long: true, mayWait: map[string]bool{"store TestB": true}},
			shows:   []string{"without leave (TestB;"}, last: "0 passed, 1 failed, 0 skipped"},
		{name: "the long list names no test", input: passes, options: options{mayWait: map[string]bool{"fsm TestGone": true, "fsm TestA": true}},
			shows: []string{"not there: fsm TestGone\n"}, hides: "not there: fsm TestA", last: "1 passed, 1 failed, 0 skipped"},
		{name: "what may be missing is", input: passes + stream("store TestB output     b_test.go:1: left out: no server", "store TestB skip",
			"store TestC/x output     c_test.go:1: left out: no server", "store TestC/x skip", "store TestC pass", "store - pass"),
			options: options{leave: "no server", long: true},
			shows:   []string{"left out: 2 (no server)\n"}, hides: "left to --long", last: "2 passed, 0 failed, 1 skipped"},
		{name: "what the lists name below a test left out", input: passes + stream("a/b TestC output     c_test.go:1: left out: no server", "a/b TestC skip", "a/b - pass"),
			options: options{leave: "no server", mayWait: map[string]bool{"a/b TestC/x": true}, mayLack: map[string]bool{"a/b TestC*/y*": true}},
			shows:   []string{"left out: 1"}, hides: "lists a test", last: "1 passed, 0 failed, 1 skipped"},
		{name: "what the lists name beside a test left out", input: passes + stream("a/b TestC/x output     c_test.go:1: left out: no server", "a/b TestC/x skip",
			"a/b TestC pass", "a/b - pass"),
			options: options{leave: "no server", mayWait: map[string]bool{"a/b TestD/x": true}, mayLack: map[string]bool{"a/b TestC/y*": true}},
			shows:   []string{"not there: a/b TestD/x\n", "not skipped: a/b TestC/y*\n"}, last: "2 passed, 2 failed, 0 skipped"},
		{name: "something else is missing", input: stream("store TestB output     b_test.go:1: left out: no server at all", "store TestB skip", "store - pass"),
			options: options{leave: "no server"}, shows: []string{"without leave (TestB;"}, last: "0 passed, 1 failed, 0 skipped"},
		{name: "nothing may be missing", input: stream("store TestB output     b_test.go:1: left out: ", "store TestB skip", "store - pass"),
			shows: []string{"without leave (TestB;"}, last: "0 passed, 1 failed, 0 skipped"},
		{name: "a test left out leaves none to its neighbour", input: stream("store TestC/x output     c_test.go:1: left out: no server",
			"store TestC/x skip", "store TestC/y skip", "store TestC pass", "store - pass"), options: options{leave: "no server"},
			shows: []string{"without leave (TestC/y;"}, last: "0 passed, 1 failed, 0 skipped"},
		{name: "an engine with a version", input: passes, options: options{engines: "memory,sqlite,postgres 15.18"},
			shows: []string{"engines: memory, sqlite, postgres 15.18 · 1 suites\n"}, last: "1 passed, 0 failed, 0 skipped"},
		{name: "an engine lacks something", input: passes + stream("store TestC/xy skip", "store TestC pass", "store - pass"),
			options: options{long: true, mayLack: map[string]bool{"store Test*/x*": true}},
			shows:   []string{"what an engine lacks: 1\n"}, hides: "without leave", last: "2 passed, 0 failed, 0 skipped"},
		{name: "it lacks more than is listed", input: stream("store TestC/x skip", "store TestC/y skip", "store TestC pass", "store - pass"),
			options: options{mayLack: map[string]bool{"store TestC/x": true}},
			shows:   []string{"without leave (TestC/y;"}, last: "0 passed, 1 failed, 0 skipped"},
		{name: "it does not lack what is listed", input: stream("store TestC/x pass", "store TestC pass", "store - pass"),
			options: options{mayLack: map[string]bool{"store TestC/x": true}},
			shows:   []string{"that was not skipped: store TestC/x\n"}, last: "1 passed, 1 failed, 0 skipped"},
		{name: "a part of the tests need not meet the lists", input: passes, options: options{part: true,
			mayLack: map[string]bool{"store TestC/x": true}, mayWait: map[string]bool{"store TestD": true}}, last: "1 passed, 0 failed, 0 skipped"},
		{name: "a check failed before", input: passes, options: options{checks: []string{"gofmt"}},
			shows: []string{"failed before the tests: gofmt\n"}, last: "1 passed, 1 failed, 0 skipped"},
		{name: "no test ran", input: stream("docs - skip"), shows: []string{"no test ran\n"}, last: "0 passed, 1 failed, 0 skipped"},
		{name: "only the go command fails", input: passes + `{"Action":"go-test-failed"}`, shows: []string{"the go command failed"},
			last: "1 passed, 1 failed, 0 skipped"},
		{name: "a line that is no event", input: "go: what is this?\n" + passes, shows: []string{"go: what is this?\n"},
			last: "1 passed, 0 failed, 0 skipped"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			r := newReport(&out, tt.options)
			if err := r.read(strings.NewReader(tt.input)); err != nil {
				t.Fatal(err)
			}
			ok := r.finish()
			if want := strings.Contains(tt.last, " 0 failed"); ok != want {
				t.Errorf("finish gives %v, want %v", ok, want)
			}
			rest := out.String()
			if tt.hides != "" && strings.Contains(rest, tt.hides) {
				t.Errorf("shows %q", tt.hides)
			}
			for _, want := range append(tt.shows, "\n"+tt.last+"\n") {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("no %q where it should be in\n%s", want, out.String())
				}
				rest = strings.TrimSuffix("\n"+after, "\n\n") // the next may begin with this one's end of line
			}
			if strings.Trim(rest, "\n") != "" {
				t.Errorf("goes on after the count: %q", rest)
			}
		})
	}
}

func TestSlowestAreTen(t *testing.T) {
	var b strings.Builder
	for i := range 15 {
		fmt.Fprintf(&b, `{"Package":"p","Test":"Test%02d","Action":"pass","Elapsed":%d}`+"\n", i, i)
	}
	var out bytes.Buffer
	r := newReport(&out, options{})
	if err := r.read(strings.NewReader(b.String() + `{"Package":"p","Action":"pass"}`)); err != nil {
		t.Fatal(err)
	}
	r.finish()
	_, list, _ := strings.Cut(out.String(), "slowest:\n")
	if strings.Index(list, "Test14") > strings.Index(list, "Test05") || !strings.Contains(list, "Test05") || strings.Contains(list, "Test04") {
		t.Errorf("not the ten slowest, slowest first:\n%s", list)
	}
}

func TestKeepIsBounded(t *testing.T) {
	var kept []byte
	for range 5000 {
		kept = keep(kept, strings.Repeat("x", 999)+"\n")
	}
	kept = keep(kept, "the end\n")
	if len(kept) > 2*maxShown || !bytes.HasSuffix(kept, []byte("the end\n")) || !bytes.HasPrefix(kept, []byte("(the beginning")) {
		t.Errorf("kept %d bytes, from %q", len(kept), kept[:40])
	}
}

func TestParseLong(t *testing.T) {
	got := parseList("# a comment\n\n. TestA\nstore/sqlite  TestB/x # why\n")
	if len(got) != 2 || !got[". TestA"] || !got["store/sqlite TestB/x"] {
		t.Errorf("parseList gives %v", got)
	}
	for name := range parseList(long) {
		if strings.Count(name, " ") != 1 {
			t.Errorf("long.txt: %q is not PACKAGE TEST", name)
		}
	}
}
