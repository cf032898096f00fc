package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/projections"
	"github.com/foundling-go/foundling/projections/runner"
	"github.com/foundling-go/foundling/store/sqlite"
)

var update = flag.Bool("update", false, "write the golden files anew")

// office is a store in which a little of everything has happened: a message is completed with a result, one is a dead letter, one is held with
// its lock by a worker that lives, one waits for that lock, and one is queued on a topic that is paused.
type office struct {
	t    *testing.T
	path string
	ids  map[string]foundling.ID
	out  bytes.Buffer
	err  bytes.Buffer
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, path: filepath.Join(t.TempDir(), "store.db"), ids: map[string]foundling.ID{}}
	s, err := sqlite.Open(t.Context(), o.path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	client, err := foundling.NewClient(s, foundling.ClientOptions{Actor: "alice@desk foundling", Logger: (&app{}).loggerTo(&o.err, 0)})
	if err != nil {
		t.Fatal(err)
	}
	mail := foundling.NewTopic[json.RawMessage]("mail", foundling.TopicOptions{Limit: 2, MaxAttempts: 1})
	o.enqueue(client, "good", mail.Draft(json.RawMessage(`{"to":"ann","password":"hunter2"}`), foundling.EnqueueOptions{Key: "order:1"}))
	o.enqueue(client, "bad", mail.Draft(json.RawMessage(`{"to":"bob"}`), foundling.EnqueueOptions{}))
	worker, err := foundling.NewWorker(client, foundling.WorkerOptions{Concurrency: 1, Sweeps: foundling.SweepsOff, Program: "office"})
	if err != nil {
		t.Fatal(err)
	}
	good, bad := o.ids["good"], o.ids["bad"]
	held, over := make(chan struct{}), make(chan struct{})
	mail.Handle(worker, func(_ context.Context, m foundling.Message[json.RawMessage]) error {
		switch m.ID {
		case good:
			return m.SetResult(map[string]string{"sent": "yes"})
		case bad:
			return errors.New("no such mailbox")
		}
		close(held)
		<-over
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		close(over)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if m, err := client.Wait(t.Context(), o.ids["bad"]); err != nil || m.State != foundling.DeadLettered {
		t.Fatalf("%s: %v", m.State, err)
	}
	o.enqueue(client, "held", mail.Draft(json.RawMessage(`1`), foundling.EnqueueOptions{Lock: "user:ann"}))
	<-held
	o.enqueue(client, "waits", mail.Draft(json.RawMessage(`2`), foundling.EnqueueOptions{Lock: "user:ann", Delay: time.Hour}))
	letters := foundling.NewTopic[json.RawMessage]("letters", foundling.TopicOptions{})
	o.enqueue(client, "letter", letters.Draft(json.RawMessage(`3`), foundling.EnqueueOptions{}))
	if err := client.PauseTopic(t.Context(), "letters", "INC-142"); err != nil {
		t.Fatal(err)
	}
	totals, err := runner.New(s, runner.Options{}, func() projections.Durable { return &projections.Totals{} })
	if err != nil {
		t.Fatal(err)
	}
	if err := totals.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) enqueue(c *foundling.Client, name string, d foundling.Draft) {
	o.t.Helper()
	list, err := c.EnqueueMany(o.t.Context(), d)
	if err != nil {
		o.t.Fatal(err)
	}
	o.ids[name] = list[0].ID
}

// run runs a command on the store; a word such as @held is the id of that message.
func (o *office) run(line string) int {
	o.t.Helper()
	args := strings.Fields(line)
	for i, arg := range args {
		if name, ok := strings.CutPrefix(arg, "@"); ok {
			args[i] = o.ids[name].String()
		}
	}
	o.out.Reset()
	o.err.Reset()
	a := &app{stdin: strings.NewReader("one\n"), stdout: &o.out, stderr: &o.err, env: func(name string) string {
		return map[string]string{"FOUNDLING_STORE": "sqlite:" + o.path, "USER": "alice", redactEnv: "key"}[name]
	}}
	return execute(o.t.Context(), a, args)
}

// plainest takes out of an output what is another one each time: ids, times and lengths of time, and who runs where.
func plainest(t *testing.T, text []byte, path string) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	names := map[string]string{}
	b, err := json.MarshalIndent(plainer(v, "", func(s string) string {
		s = strings.ReplaceAll(s, path, "STORE")
		s = anyID.ReplaceAllStringFunc(s, func(id string) string {
			if names[id] == "" {
				names[id] = "id-" + string(rune('a'+len(names)))
			}
			return names[id]
		})
		return anySpan.ReplaceAllString(s, "SPAN")
	}), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

var (
	anyID   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	anySpan = regexp.MustCompile(`\b[0-9.]+m?s\b`)
)

func plainer(v any, name string, text func(string) string) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) { // ids are named in the order in which they are met
			v[name] = plainer(v[name], name, text)
		}
	case []any:
		for i := range v {
			v[i] = plainer(v[i], name, text)
		}
	case string:
		switch {
		case name == "time" || name == "since" || name == "until" || strings.HasSuffix(name, "_at"):
			return "TIME"
		case name == "host" || name == "go" || name == "os" || name == "arch" || name == "version" || name == "commitment" || name == "result_commitment":
			return strings.ToUpper(name)
		}
		return text(v)
	case float64:
		if strings.HasSuffix(name, "_seconds") || name == "pid" || v > 1e12 {
			return 1
		}
	}
	return v
}

// goldens are command lines, by the files that their outputs are kept in, with their exit codes. They are run in this order.
func goldens() []struct {
	name, line string
	code       int
} {
	return []struct {
		name, line string
		code       int
	}{
		{"topics", "topics", 0},
		{"topics_one", "topics mail", 0},
		{"workers", "workers", 0},
		{"locks", "locks", 0},
		{"locks_one", "locks user:ann", 0},
		{"status", "status", exitFinding},
		{"messages", "messages --state all", 0},
		{"messages_page", "messages --rows 2", 0},
		{"messages_one", "messages @good", 0},
		{"messages_redacted", "messages @good --redact", 0},
		{"trace", "trace @bad", 0},
		{"events", "events --message @held", 0},
		{"events_page", "events --rows 3", 0},
		{"verify", "verify", 0},
		{"machines", "machines topic", 0},
		{"migrate", "migrate", 0},
		{"version", "version", 0},
		{"projections", "projections", 0},
		{"sweep_dry", "sweep --dry-run", 0},
		{"requeue_alive", "requeue @held --reason why --yes", exitRefused},
		{"requeue", "requeue @held --force --reason why", exitRefused},
		{"redrive", "redrive @bad --reason fixed --yes", 0},
		{"cancel", "cancel @waits @good --reason unwanted --yes", exitFinding},
		{"pause", "pause mail --reason why --yes", 0},
		{"resume", "resume letters --reason done --yes", 0},
		{"topics_set", "topics set mail --limit 5 --reason more --yes", 0},
		{"erase", "erase @good @held --reason asked --yes", exitFinding},
		{"projections_drop", "projections drop totals", exitRefused},
		{"prune_dry", "prune --older-than 1h --dry-run", 0},
		{"release_lock", "release-lock user:ann --reason why", exitRefused},
		{"enqueue", "enqueue mail", 0},
	}
}

// The outputs are what they were, and what their schemas say.
func TestGoldenOutputs(t *testing.T) {
	o := newOffice(t)
	for _, g := range goldens() {
		t.Run(g.name, func(t *testing.T) {
			if code := o.run(g.line + " -o json"); code != g.code {
				t.Fatalf("exit code %d, want %d\n%s\n%s", code, g.code, &o.out, &o.err)
			}
			golden(t, o, g.name, o.out.Bytes())
			if g.code == exitRefused {
				golden(t, o, g.name+"_error", o.err.Bytes())
			} else if o.err.Len() > 0 {
				t.Errorf("standard error has %s", &o.err)
			}
		})
	}
}

func golden(t *testing.T, o *office, name string, text []byte) {
	t.Helper()
	if err := validate(text); err != nil {
		t.Errorf("%s: %v\n%s", name, err, text)
	}
	got, file := plainest(t, text, o.path), filepath.Join("testdata", "golden", name+".json")
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

// Every form has the same items.
func TestEveryFormHasTheSameItems(t *testing.T) {
	o := newOffice(t)
	for _, line := range []string{"topics", "workers", "locks", "messages --state all", "events --type message.enqueued", "machines", "status", "trace @bad"} {
		o.run(line + " --json")
		var whole struct {
			Items []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(o.out.Bytes(), &whole); err != nil || len(whole.Items) == 0 {
			t.Errorf("%s: %v, %d items", line, err, len(whole.Items))
		}
		o.run(line + " --output jsonl")
		lines := strings.Split(strings.TrimSuffix(o.out.String(), "\n"), "\n")
		if len(lines) != len(whole.Items) || !json.Valid([]byte(lines[0])) {
			t.Errorf("%s: %d lines, want %d\n%s", line, len(lines), len(whole.Items), &o.out)
		}
		o.run(line + " -o csv")
		if n := strings.Count(o.out.String(), "\n"); n != len(whole.Items)+1 {
			t.Errorf("%s: %d lines of CSV, want %d\n%s", line, n, len(whole.Items)+1, &o.out)
		}
	}
}
