package main

import (
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/foundling-go/foundling/internal/child"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	child.MaybeWatcher()
	testscript.Main(m, map[string]func(){"foundling": main})
}

// TestScripts runs the command lines of testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("FOUNDLING_STORE", env.WorkDir+"/store.db")
			env.Setenv("USER", "alice")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ends":     scriptEnds,
			"ids":      scriptIDs,
			"sql":      scriptSQL,
			"truncate": scriptTruncate,
		},
	})
}

// scriptEnds runs a program and wants its exit status: ends CODE PROGRAM [ARG...].
func scriptEnds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: ends CODE PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("run %s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// scriptIDs reads the ids that enqueue printed last: ids NAME... sets each NAME to an id, and NAME_TAIL to its last twelve digits.
func scriptIDs(ts *testscript.TestScript, neg bool, args []string) {
	lines := strings.Fields(ts.ReadFile("stdout"))
	if neg || len(lines) < len(args) {
		ts.Fatalf("%d ids, want %d", len(lines), len(args))
	}
	for i, name := range args {
		ts.Setenv(name, lines[i])
		ts.Setenv(name+"_TAIL", lines[i][len(lines[i])-12:])
	}
}

// scriptSQL changes a store behind its back: sql FILE STATEMENT.
func scriptSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql FILE STATEMENT")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec(args[1])
	ts.Check(err)
}

// scriptTruncate cuts a file: truncate FILE BYTES.
func scriptTruncate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: truncate FILE BYTES")
	}
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}
