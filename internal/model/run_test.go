package model

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/internal/scenario"
)

// run is one script on its way, on the model and on every engine.
type run struct {
	ctx    context.Context
	model  *model
	worlds []*scenario.World
	names  []string // of the engines
	dirs   []string
	tally  *tally
}

// checkEvery is after how many steps the rows are held against the log.
const checkEvery = 12

func begin(ctx context.Context, engines []scenario.Engine, t *tally) (*run, error) {
	r := &run{ctx: ctx, tally: t}
	for _, e := range engines {
		dir, err := os.MkdirTemp("", "model-")
		if err != nil {
			return nil, errors.Join(err, r.end())
		}
		r.dirs = append(r.dirs, dir)
		w, err := scenario.New(ctx, e, dir)
		if err != nil {
			return nil, errors.Join(err, r.end())
		}
		r.worlds, r.names = append(r.worlds, w), append(r.names, e.Name)
	}
	r.model = newModel(func(name string) events.ID {
		id, err := r.worlds[0].ID(name)
		if err != nil {
			panic(err) // the model speaks of whom it has seen in the log
		}
		return id
	})
	return r, nil
}

func (r *run) end() error {
	var errs []error
	for _, w := range r.worlds {
		errs = append(errs, w.Close())
	}
	for _, dir := range r.dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

// step does an action everywhere. An error says what the engines or the model do not agree on, or which law is broken.
func (r *run) step(a action) error {
	want := r.model.predict(a)
	var first scenario.Result
	var firstStored []string
	for i, w := range r.worlds {
		got, err := w.Do(r.ctx, a.line, a.input)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", r.names[i], a.line, err)
		}
		if got.Text != want {
			return fmt.Errorf("%s: %s\n%sit says:\n%sthe model says:\n%s", r.names[i], a.line, a.input, got.Text, want)
		}
		if a.again != "" {
			if _, err := w.Do(r.ctx, a.again, ""); err != nil {
				return fmt.Errorf("%s: %s: %w", r.names[i], a.line, err)
			}
		}
		stored, err := w.Stored(got.Events)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", r.names[i], a.line, err)
		}
		if i == 0 {
			first, firstStored = got, stored
		}
		for j, text := range stored {
			if text != firstStored[j] {
				return fmt.Errorf("%s: %s: event %d has the same text and other bytes:\n%s\n%s", r.names[i], a.line, got.Events[j].Position, text, firstStored[j])
			}
		}
	}
	r.tally.add(first)
	return nil
}

// check holds the rows of every engine against its log.
func (r *run) check() error {
	for i, w := range r.worlds {
		if err := w.Check(r.ctx); err != nil {
			return fmt.Errorf("%s: %w", r.names[i], err)
		}
	}
	return nil
}

// replay runs a whole script on new stores.
func replay(ctx context.Context, engines []scenario.Engine, script []action) (err error) {
	r, err := begin(ctx, engines, newTally())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	for _, a := range script {
		if err := r.step(a); err != nil {
			return err
		}
		if err := r.check(); err != nil {
			return err
		}
	}
	return nil
}

// tryOut is replay of a script with steps left out. The model may lack what a later step speaks of: such a script says nothing.
func tryOut(ctx context.Context, engines []scenario.Engine, script []action) (err error) {
	defer func() {
		if recover() != nil {
			err = scenario.ErrNotYet
		}
	}()
	return replay(ctx, engines, script)
}

// shorten leaves out of a failing script what it fails without.
func shorten(ctx context.Context, engines []scenario.Engine, script []action) []action {
	for i := len(script) - 1; i >= 0; i-- {
		shorter := append(append([]action(nil), script[:i]...), script[i+1:]...)
		if err := tryOut(ctx, engines, shorter); err != nil && !errors.Is(err, scenario.ErrNotYet) {
			script = shorter
		}
	}
	return script
}
