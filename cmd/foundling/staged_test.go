//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store/postgres"
)

// stageIn stages a message as an application does, in a transaction of its own.
func stageIn(t *testing.T, dsn, text string) foundling.ID {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	client, err := foundling.NewClient(s, foundling.ClientOptions{Actor: "app"})
	if err != nil {
		t.Fatal(err)
	}
	tx := pgtest.Begin(t, dsn)
	mail := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
	ids, err := postgres.EnqueueTx(t.Context(), client, tx, mail.Draft(text, foundling.EnqueueOptions{}))
	if err == nil {
		err = tx.Commit(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

// What is staged is not in the log yet, and is no less there for that: by its id, by the end of that, in lists, and for whoever acts on it.
func TestCommandsSeeWhatIsStaged(t *testing.T) {
	h := newHost(t)
	dsn := migrated(t).Database(t)
	ids := []string{stageIn(t, dsn, "one").String(), stageIn(t, dsn, "two").String()}
	tail := ids[0][len(ids[0])-6:]
	for line, wanted := range map[string][]string{
		"trace " + ids[0]:                {"message " + ids[0] + " on topic mail: staged since", `payload  5 bytes, "\"one\""`},
		"trace " + tail:                  {"message " + ids[0] + " on topic mail: staged since"},
		"trace " + ids[1] + " -o json":   {`"staged"`, ids[1]},
		"messages --state staged":        {"staged"},
		"messages --state staged -o csv": {ids[0], ids[1]},
		"verify":                         {"staged beside the log: 2 messages"},
		"status":                         {"nothing is wrong"}, // they have not been there for long
	} {
		got := h.run("", append(strings.Fields(line), "--store", dsn)...)
		for _, text := range wanted {
			if got.code != 0 || !strings.Contains(got.out+got.errout, text) {
				t.Errorf("%s: exit code %d, want %q in\n%s%s", line, got.code, text, got.out, got.errout)
			}
		}
	}
	if got := h.run("", "cancel", tail, "--reason", "x", "--yes", "--store", dsn); got.code != 0 {
		t.Errorf("cancel: exit code %d\n%s", got.code, got.errout)
	}
	if got := h.run("", "work", "mail", "--until-empty", "--store", dsn, "--", "true"); got.code != 0 {
		t.Errorf("work: exit code %d\n%s", got.code, got.errout)
	}
	for id, state := range map[string]string{ids[0]: "cancelled", ids[1]: "completed"} {
		if got := h.run("", "trace", id, "--store", dsn); got.code != 0 || !strings.Contains(got.out, "message "+id+" on topic mail: "+state) {
			t.Errorf("exit code %d, want %s, in\n%s%s", got.code, state, got.out, got.errout)
		}
	}
	if got := h.run("", "verify", "--store", dsn); got.code != 0 || strings.Contains(got.errout, "staged") {
		t.Errorf("at the end: exit code %d\n%s%s", got.code, got.out, got.errout)
	}
}
