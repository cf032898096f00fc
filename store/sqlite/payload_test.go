package sqlite_test

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

// TestADamagedPayloadDoesNotStopItsTopic damages the payload of the first of two messages: it ends as a dead letter that says so, and
// the other one is handled.
func TestADamagedPayloadDoesNotStopItsTopic(t *testing.T) {
	for name, statement := range map[string]string{
		"another byte":  "UPDATE payloads SET bytes = X'00' WHERE rowid = (SELECT min(rowid) FROM payloads)",
		"a short salt":  "UPDATE payloads SET salt = X'00' WHERE rowid = (SELECT min(rowid) FROM payloads)",
		"no row at all": "DELETE FROM payloads WHERE rowid = (SELECT min(rowid) FROM payloads)",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			s := open(t, path, sqlite.Options{})
			c, err := foundling.NewClient(s, foundling.ClientOptions{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
			if err != nil {
				t.Fatal(err)
			}
			topic := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
			list, err := c.EnqueueMany(t.Context(), topic.Draft("first", foundling.EnqueueOptions{}), topic.Draft("second", foundling.EnqueueOptions{}))
			if err != nil {
				t.Fatal(err)
			}
			tamper(t, path, statement)
			w, err := foundling.NewWorker(c, foundling.WorkerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			topic.Handle(w, func(_ context.Context, m foundling.Message[string]) error {
				if m.Payload != "second" {
					t.Errorf("a handler got %q", m.Payload)
				}
				cancel()
				return nil
			})
			if err := w.Run(ctx); err != nil {
				t.Fatal(err)
			}
			for i, want := range []events.Type{events.TypeMessageDeadLettered, events.TypeMessageCompleted} {
				var last events.Type
				for r, err := range s.Read(t.Context(), "", store.Filter{Entity: events.MessageEntity(list[i].ID)}) {
					if err != nil {
						t.Fatal(err)
					}
					last = r.Event.Type()
				}
				if last != want {
					t.Errorf("message %d ended with %s, want %s", i+1, last, want)
				}
			}
		})
	}
}

// tamper changes the file past the engine.
func tamper(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}
