package scenario

import (
	"context"
	"errors"
	"sync"

	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/store"
)

// parallel does every line by itself at the same time. What came of them is for the log to tell.
func (w *World) parallel(ctx context.Context, l *line, input string) error {
	list, err := lines(input)
	if err = errors.Join(err, l.end()); err != nil {
		return err
	}
	var tasks []func() error
	var reports []*swept
	for _, l := range list {
		if l.verb == "sweep" {
			s, err := w.sweeper(l)
			if err = errors.Join(err, l.end()); err != nil {
				return err
			}
			report := new(swept)
			reports = append(reports, report)
			tasks = append(tasks, func() error { return s.run(ctx, report) })
			continue
		}
		if l.verb == "prune" {
			p, err := w.pruner(l)
			if err != nil {
				return err
			}
			tasks = append(tasks, func() error { _, err := p.Run(ctx); return err })
			continue
		}
		s, err := w.step(ctx, l, "")
		if err != nil {
			return err
		}
		tasks = append(tasks, func() error { return w.send(ctx, s) })
	}
	errs := make([]error, len(tasks))
	var all sync.WaitGroup
	for i, task := range tasks {
		all.Go(func() { errs[i] = task() })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	w.last, w.swept = nil, sum(reports)
	_, err = w.follow(ctx)
	return err
}

// send commits a step by itself. A refusal is for nobody to hear.
func (w *World) send(ctx context.Context, s *step) error {
	receipts, err := w.settle(ctx, []store.Call{s.call})
	if err == nil {
		err = receipts[0].Err
	}
	if refusal := (*fsm.Refusal)(nil); err != nil && !errors.As(err, &refusal) {
		return err
	}
	if s.done == nil || err != nil {
		return nil
	}
	return s.done(ctx, receipts[0])
}
