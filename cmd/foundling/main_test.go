package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/internal/child"
	"github.com/foundling-go/foundling/internal/scenario"
	"github.com/rogpeppe/go-internal/testscript"
)

// prooflessEnv makes the test binary the command as it is where no proof of death is to be had.
const prooflessEnv = "FOUNDLING_TEST_PROOFLESS"

func TestMain(m *testing.M) {
	child.MaybeWatcher()
	if os.Getenv(prooflessEnv) != "" {
		mainWithoutProof()
	}
	testscript.Main(running{m}, map[string]func(){"foundling": main, "foundling-unproven": mainWithoutProof})
}

// mainWithoutProof is the command as it is where no proof of death is to be had.
func mainWithoutProof() {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Getenv, proofless: true}
	os.Exit(execute(context.Background(), a, os.Args[1:]))
}

// TestScripts runs the command lines of testdata/script, on each engine that a command can name. A line that begins with [sqlite] or [postgres] is of
// that engine alone; what is said of the store of $FOUNDLING_STORE is the same for all. Those of testdata/alone are about files, or need no store.
func TestScripts(t *testing.T) {
	for _, engine := range scenario.Engines() {
		if engine.Name != "memory" {
			t.Run(engine.Name, func(t *testing.T) { runScripts(t, engine.Name, "testdata/script") })
		}
	}
	t.Run("alone", func(t *testing.T) { runScripts(t, "sqlite", "testdata/alone") })
}

func runScripts(t *testing.T, engine, dir string) {
	template := migrated(t)
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(word string) (bool, error) {
			if word == "sqlite" || word == "postgres" {
				return word == engine, nil
			}
			return false, fmt.Errorf("condition %q: unknown", word)
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("FOUNDLING_STORE", env.WorkDir+"/store.db")
			if engine == "postgres" {
				dsn, drop, err := template.New(t.Context())
				if err != nil {
					return err
				}
				env.Defer(func() {
					if err := drop(); err != nil {
						t.Error(err)
					}
				})
				env.Setenv("FOUNDLING_STORE", dsn)
				env.Setenv("SECRET", secretOf(t, dsn))
			}
			env.Setenv("USER", "alice")
			if strings.HasPrefix(filepath.Base(env.WorkDir), "script-work") {
				return nil // many goroutines: the command is this program, with the race detector where it has it
			}
			path, err := binaryPath() // it starts in a fraction of the time
			if err != nil {
				return err
			}
			env.Setenv("PATH", filepath.Dir(path)+string(filepath.ListSeparator)+env.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await":    scriptAwait,
			"ends":     scriptEnds,
			"ids":      scriptIDs,
			"json":     scriptJSON,
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

// scriptAwait waits until there is a file, which another process makes: await FILE.
func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await FILE")
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // polling: the other process has no other way to say so
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("there is no file %s", args[0])
		}
	}
}

// scriptJSON looks into the object that the last command printed: json stdout|stderr PATH WANT, with a path such as items.0.topic. An array is
// wanted by its length, an absent field as absent. The object must be what its schema says.
func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json stdout|stderr PATH WANT")
	}
	var at any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &at); err != nil {
		ts.Fatalf("%s is not one JSON value: %v", args[0], err)
	}
	ts.Check(validate([]byte(ts.ReadFile(args[0]))))
	for name := range strings.SplitSeq(args[1], ".") {
		at = inside(at, name)
	}
	got := fmt.Sprint(at)
	switch v := at.(type) {
	case nil:
		got = "null"
	case []any:
		got = fmt.Sprint(len(v))
	case float64:
		got = strconv.FormatFloat(v, 'f', -1, 64)
	}
	if (got == args[2]) == neg {
		ts.Fatalf("%s is %s", args[1], got)
	}
}

// inside is one step of a path.
func inside(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		if got, ok := v[name]; ok {
			return got
		}
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i < len(v) {
			return v[i]
		}
	}
	return "absent"
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

// scriptSQL changes a store behind its back: sql STORE STATEMENT.
func scriptSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql STORE STATEMENT")
	}
	driver, name := "sqlite", ts.MkAbs(args[0])
	if strings.Contains(args[0], "://") {
		driver, name = "pgx", args[0]
	}
	db, err := sql.Open(driver, name)
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
