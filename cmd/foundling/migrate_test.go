package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// older is a store that an earlier version wrote.
func older(t *testing.T) string {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "store", "sqlite", "testdata", "schema2.db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A command that only looked migrated the store, and shut out the workers of the older version.
func TestLookingDoesNotMigrate(t *testing.T) {
	path := older(t)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out, errout bytes.Buffer
	run := func(line string) int {
		out.Reset()
		errout.Reset()
		a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errout, env: func(name string) string {
			return map[string]string{"FOUNDLING_STORE": path}[name]
		}}
		return execute(t.Context(), a, strings.Fields(line))
	}
	for _, line := range []string{
		"status", "topics", "messages", "workers", "locks", "events", "verify", "projections", "prune --dry-run", "sweep --dry-run",
		"projections drop totals --yes", "pause mail --yes --reason why", "trace 0123456789ab",
	} {
		code := run(line)
		if text := errout.String(); code != exitCorrupt || !strings.Contains(text, "schema version 2") || !strings.Contains(text, "foundling migrate") {
			t.Errorf("%s: exit code %d\n%s%s", line, code, &out, text)
		}
	}
	if code := run("__complete pause "); code != 0 || strings.Contains(out.String(), "mail") || errout.Len() > 0 {
		t.Errorf("completion: exit code %d\n%s%s", code, &out, &errout)
	}
	after, err := os.ReadFile(path)
	if err != nil || !slices.Equal(before, after) {
		t.Fatalf("the store has changed: %v", err)
	}
	if code := run("migrate"); code != 0 || out.String() != "migrated from schema 2 to schema 3\n" {
		t.Errorf("exit code %d\n%s%s", code, &out, &errout)
	}
	if code := run("migrate"); code != 0 || out.String() != "nothing to do: the store has schema 3\n" {
		t.Errorf("once more: exit code %d\n%s%s", code, &out, &errout)
	}
	if code := run("verify"); code != 0 {
		t.Errorf("verify: exit code %d\n%s%s", code, &out, &errout)
	}
	if code := run("enqueue mail --store " + older(t)); code != 0 {
		t.Errorf("enqueue: exit code %d\n%s%s", code, &out, &errout)
	}
}
