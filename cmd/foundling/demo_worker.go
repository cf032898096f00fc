package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/foundling-go/foundling"
	"github.com/spf13/cobra"
)

// demoWorker is what the command line of a process of the demonstration says.
type demoWorker struct {
	settings
	topics    []string
	jobs      int
	takes     time.Duration
	proofless bool
}

// newDemoWorker is the command that the demonstration starts itself as. It ends when its standard input does, and so with whoever started it,
// however that ended.
func newDemoWorker(a *app) *cobra.Command {
	var o demoWorker
	cmd := &cobra.Command{
		Use:    "demo-worker TOPIC…",
		Short:  "Work for foundling demo",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkWorker(); err != nil {
				return err
			}
			o.topics, a.proofless = args, o.proofless
			return a.demoWorker(cmd.Context(), o)
		},
	}
	o.working(cmd)
	cmd.Flags().IntVarP(&o.jobs, "jobs", "j", 1, "how many it handles at once")
	cmd.Flags().DurationVar(&o.takes, "takes", 0, "how long it takes to handle a message")
	cmd.Flags().BoolVar(&o.proofless, "without-proof", false, "open the store as where no proof of death is to be had")
	return cmd
}

func (a *app) demoWorker(ctx context.Context, o demoWorker) error {
	signal.Ignore(os.Interrupt) // a terminal sends it to the whole group; whoever started this process ends it
	s, err := a.openToWork(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	client, err := foundling.NewClient(s, foundling.ClientOptions{Actor: a.actor("demo"), Logger: a.logger()})
	if err != nil {
		return err
	}
	options, err := o.worker(foundling.WorkerOptions{Concurrency: o.jobs, DrainTimeout: time.Second, PollInterval: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	worker, err := foundling.NewWorker(client, options)
	if err != nil {
		return err
	}
	for _, name := range o.topics {
		foundling.NewTopic[string](name, foundling.TopicOptions{}).Handle(worker, o.handle)
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // blocks in a read that nothing can end; it goes with the process
		_, _ = io.Copy(io.Discard, a.stdin)
		stop()
	}()
	return worker.Run(working)
}

// handle takes its time.
func (o demoWorker) handle(ctx context.Context, _ foundling.Message[string]) error {
	timer := time.NewTimer(o.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("told to end"), context.Cause(ctx))
	}
}
