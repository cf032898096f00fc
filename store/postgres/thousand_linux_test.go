package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/postgres"
	"github.com/jackc/pgx/v5"
)

// idlersEnv makes the test binary a process of many workers that have nothing to do, on the store of this connection string, until its input ends.
const idlersEnv = "FOUNDLING_IDLERS_STORE"

const (
	idlersEach    = 100 // workers of a process
	idlersConns   = 7   // and its connections for commits and reads: three more are for hints and heartbeats
	idlersProcess = 10
)

func TestMain(m *testing.M) {
	dsn := os.Getenv(idlersEnv)
	if dsn == "" {
		os.Exit(m.Run())
	}
	if err := idle(dsn); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// idle runs workers of one client until the input ends.
func idle(dsn string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := postgres.Open(ctx, dsn, postgres.Options{MaxConns: idlersConns, Logger: logger})
	if err != nil {
		return err
	}
	defer s.Close()
	client, err := foundling.NewClient(s, foundling.ClientOptions{Logger: logger})
	if err != nil {
		return err
	}
	mail := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
	var workers sync.WaitGroup
	errs := make([]error, idlersEach)
	for i := range errs {
		worker, err := foundling.NewWorker(client, foundling.WorkerOptions{})
		if err != nil {
			return err
		}
		mail.Handle(worker, func(context.Context, foundling.Message[string]) error { return nil })
		workers.Go(func() { errs[i] = worker.Run(ctx) })
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	cancel()
	workers.Wait()
	return errors.Join(append(errs, err)...)
}

// startIdlers starts a process of idle workers. end has it stop, and waits for it.
func startIdlers(t *testing.T, dsn string) (pid int, end func() error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), idlersEnv+"="+dsn)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var ended error
	end = sync.OnceValue(func() error {
		in.Close()
		ended = cmd.Wait()
		return ended
	})
	t.Cleanup(func() { _ = end() })
	return cmd.Process.Pid, end
}

// TestAThousandIdleWorkersCostLessThanACore has ten processes of a hundred workers each do nothing for a minute.
func TestAThousandIdleWorkersCostLessThanACore(t *testing.T) {
	if os.Getenv("FOUNDLING_LONG") == "" {
		t.Skip("minutes: FOUNDLING_LONG=1 asks for it")
	}
	server := pgtest.NewServer(t, pgtest.Options{Settings: []string{"max_connections = 110"}, Template: template(t)})
	s, err := postgres.Open(t.Context(), server.DSN(), postgres.Options{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	admin, err := pgx.Connect(t.Context(), server.Admin())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	var pids []int
	var ends []func() error
	for range idlersProcess {
		pid, end := startIdlers(t, server.DSN())
		pids, ends = append(pids, pid), append(ends, end)
	}
	for run := 0; run < idlersEach*idlersProcess; after(t.Context(), time.Second) {
		run = runningWorkers(t, s)
	}
	after(t.Context(), 20*time.Second) // a heartbeat of each, and what a start asks for
	if run := runningWorkers(t, s); run != idlersEach*idlersProcess {
		t.Fatalf("%d workers run", run)
	}
	if err := s.Close(); err != nil { // nothing of this process is to be measured
		t.Fatal(err)
	}
	postmaster := parentOf(t, ask[int](t, admin, "SELECT pg_backend_pid()"))
	clients, servers, began := cpuOf(t, pids...), cpuOfServer(t, postmaster), time.Now()
	statements := ask[int64](t, admin, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")
	for range 12 {
		after(t.Context(), 5*time.Second)
		n := ask[int](t, admin, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		if n > 100 {
			t.Errorf("%d connections, want at most 100", n)
		}
	}
	clients, servers = cpuOf(t, pids...)-clients, cpuOfServer(t, postmaster)-servers
	took := time.Since(began)
	statements = ask[int64](t, admin, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()") - statements
	t.Logf("in %s: clients %s, server %s, %.0f transactions a second", took, clients, servers, float64(statements)/took.Seconds())
	if clients+servers >= took {
		t.Errorf("%s of CPU in %s, want less than one core", clients+servers, took)
	}
	for _, end := range ends {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

func ask[T any](t *testing.T, conn *pgx.Conn, sql string) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func runningWorkers(t *testing.T, s store.Store) (n int) {
	t.Helper()
	for row, err := range s.Rows(t.Context(), store.RowFilter{Kind: events.KindWorker}) {
		if err != nil {
			t.Fatal(err)
		}
		if row.State == events.Live {
			n++
		}
	}
	return n
}

// stat is the fields of /proc/PID/stat from the third on: the name before may hold anything. It is nil where there is no such process.
func stat(t *testing.T, pid int) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	return number(t, stat(t, pid)[1])
}

// cpuOf is what processes, and those of their children that have ended, have used so far.
func cpuOf(t *testing.T, pids ...int) (sum time.Duration) {
	t.Helper()
	for _, pid := range pids {
		if fields := stat(t, pid); fields != nil {
			for _, ticks := range fields[11:15] { // of 10 ms: utime, stime, cutime and cstime
				sum += time.Duration(number(t, ticks)) * 10 * time.Millisecond
			}
		}
	}
	return sum
}

// cpuOfServer is what a server and all its processes have used so far.
func cpuOfServer(t *testing.T, postmaster int) time.Duration {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{postmaster}
	for _, path := range all {
		pid := number(t, filepath.Base(path))
		if fields := stat(t, pid); fields != nil && number(t, fields[1]) == postmaster {
			pids = append(pids, pid)
		}
	}
	return cpuOf(t, pids...)
}
