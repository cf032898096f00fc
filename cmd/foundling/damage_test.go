package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store/sqlite"
)

// story makes a store in which a few messages have lived, and gives its file.
func story(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "story.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := foundling.NewClient(s, foundling.ClientOptions{Actor: "test", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	topic := foundling.NewTopic[[]byte]("mail", foundling.TopicOptions{Limit: 2})
	for range 4 {
		if _, err := topic.Enqueue(t.Context(), c, []byte("hello"), foundling.EnqueueOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w, err := foundling.NewWorker(c, foundling.WorkerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan struct{}, 4)
	topic.Handle(w, func(context.Context, foundling.Message[[]byte]) error {
		if left <- struct{}{}; len(left) == 4 {
			cancel()
		}
		return nil
	})
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := topic.Enqueue(t.Context(), c, []byte("waiting"), foundling.EnqueueOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// damaged is a copy of a store on which statements were run past the engine.
func damaged(t *testing.T, path string, statements ...string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken.db")
	if err := os.WriteFile(broken, b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", broken)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		result, err := db.Exec(statement)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		if n, err := result.RowsAffected(); n == 0 || err != nil {
			t.Fatalf("%s: changed %d rows, %v", statement, n, err)
		}
	}
	return broken
}

// verify runs the command on a store and gives its exit code and what it printed.
func verify(t *testing.T, path string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, env: func(string) string { return "" }}
	return execute(t.Context(), a, []string{"verify", "--store", path}), out.String()
}

// place is what a violation must name: an entity, a version and a position.
var place = regexp.MustCompile(`(message|topic|worker|leader)[/ ]\S+.*version \d+.*position \d+`)

// TestDamageIsFound changes one byte of every column of stored events through SQL, deletes events and swaps two: verify ends with 1 each
// time and names entity, version and position.
func TestDamageIsFound(t *testing.T) {
	path := story(t)
	if code, out := verify(t, path); code != 0 {
		t.Fatalf("the undamaged store: exit code %d\n%s", code, out)
	}
	var last int
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow("SELECT max(position) FROM events").Scan(&last); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	oneByte := func(column string, position int) string {
		value := column + " + 64" // one byte of a whole number
		switch column {
		case "stream":
			value = "CASE typeof(stream) WHEN 'blob'" +
				" THEN CAST(substr(stream, 1, 15) || CASE substr(stream, 16) WHEN X'41' THEN X'42' ELSE X'41' END AS BLOB)" +
				" ELSE substr(stream, 1, length(stream) - 1) || '!' END"
		case "body":
			value = "CAST(substr(body, 1, length(body) - 1) || X'7C' AS BLOB)"
		case "checksum":
			value = "checksum + CASE WHEN checksum > 0 THEN -1 ELSE 1 END"
		}
		return fmt.Sprintf("UPDATE events SET %s = %s WHERE position = %d", column, value, position)
	}
	damage := map[string][]string{}
	for _, position := range []int{2, 7, last} {
		for _, column := range []string{"position", "stream", "version", "type", "schema", "from_state", "to_state", "body", "checksum"} {
			damage[fmt.Sprintf("%s of event %d", column, position)] = []string{oneByte(column, position)}
		}
		damage[fmt.Sprintf("event %d deleted", position)] = []string{fmt.Sprintf("DELETE FROM events WHERE position = %d", position)}
	}
	for _, pair := range [][2]int{{2, 3}, {3, last}, {6, 7}} {
		damage[fmt.Sprintf("events %d and %d swapped", pair[0], pair[1])] = []string{
			fmt.Sprintf("UPDATE events SET position = -1 WHERE position = %d", pair[0]),
			fmt.Sprintf("UPDATE events SET position = %d WHERE position = %d", pair[0], pair[1]),
			fmt.Sprintf("UPDATE events SET position = %d WHERE position = -1", pair[1]),
		}
	}
	for name, statements := range damage {
		t.Run(name, func(t *testing.T) {
			code, out := verify(t, damaged(t, path, statements...))
			if code != exitFinding || !place.MatchString(out) {
				t.Errorf("exit code %d, want 1, and entity, version and position in:\n%s", code, out)
			}
		})
	}
}
