package postgres_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/internal/pgtest"
	"github.com/foundling-go/foundling/store/postgres"
)

// A look for work that finds none is one question and no more: a process with a worker that has nothing to do asks twice a second for work, once for
// what is staged, and, where it leads, once for what is to be counted.
func TestAnIdleProcessAsksOnceForEachLook(t *testing.T) {
	dsn := template(t).Database(t)
	proxy := pgtest.NewProxy(t, dsn)
	s, err := postgres.Open(t.Context(), proxy.DSN(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client, err := foundling.NewClient(s, foundling.ClientOptions{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	worker, err := foundling.NewWorker(client, foundling.WorkerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	handled := make(chan struct{}, 1)
	mail := foundling.NewTopic[string]("mail", foundling.TopicOptions{})
	mail.Handle(worker, func(context.Context, foundling.Message[string]) error {
		handled <- struct{}{}
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	if _, err := mail.Enqueue(ctx, client, "hello", foundling.EnqueueOptions{}); err != nil {
		t.Fatal(err)
	}
	<-handled
	after(ctx, 3*time.Second) // what a start asks for is answered
	const lasts = 10 * time.Second
	before, began := proxy.Counts(), time.Now()
	after(ctx, lasts)
	idle, took := proxy.Since(before), time.Since(began)
	t.Logf("%s: %+v", took, idle)
	if perSecond := float64(idle.Trips) / took.Seconds(); perSecond >= 5 {
		t.Errorf("it has asked %.1f times a second, want fewer than 5", perSecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
