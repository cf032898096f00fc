package sqlite

import (
	"context"
	"fmt"
)

// This file gives room that pruned events leave back to the file system, a little at a time. Some of it is kept for the events to come: a file
// that is pruned as fast as it is written stays as it is.

const (
	shrinkSteps = 8   // of a prune, at most
	shrinkPages = 512 // of a step: other writers wait no longer than for that
	keptPages   = 256 // free ones that are not worth a step
	keptShare   = 4   // of the pages that are in use one in so many may be kept free

	freeQuery     = "PRAGMA freelist_count"
	pagesQuery    = "PRAGMA page_count"
	pageSizeQuery = "PRAGMA page_size"
	vacuumQuery   = "PRAGMA auto_vacuum"

	incremental = 2 // of auto_vacuum
)

// Space is what a store takes of the disk.
type Space struct {
	Bytes int64 // of its file, without what lies beside it
	Free  int64 // of these: events to come use it first
	// Shrinks reports whether prunes give room back to the file system. They do, but for a file that began in some other way than by Open (from
	// a dump, say): it stays as large as it was, and never grows while there is room in it. Compact changes that.
	Shrinks bool
}

// Space says what the store takes of the disk.
func (s *Store) Space(ctx context.Context) (Space, error) {
	var space Space
	err := s.snapshot(ctx, func(from source) error {
		var numbers [4]int64
		for i, query := range []string{pageSizeQuery, pagesQuery, freeQuery, vacuumQuery} {
			var err error
			if numbers[i], err = number(from, query); err != nil {
				return err
			}
		}
		space = Space{Bytes: numbers[0] * numbers[1], Free: numbers[0] * numbers[2], Shrinks: numbers[3] == incremental}
		return nil
	})
	if err != nil {
		return Space{}, fmt.Errorf("sqlite: space: %w", err)
	}
	return space, nil
}

// Compact writes the whole file anew, without free room, and has it shrink by itself from then on. It takes its turn among writers, who wait
// until it is done: seconds for each GiB. It needs as much room again as the file takes. A context that ends does not cancel it once it has begun.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.compact(ctx); err != nil {
		return fmt.Errorf("sqlite: compact: %w", err)
	}
	return nil
}

func (s *Store) compact(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	if err := s.turn.take(ctx); err != nil {
		return err
	}
	defer s.turn.give()
	if err := s.file.check(); err != nil {
		return err
	}
	if err := s.schema.check(s.writer.query); err != nil {
		return classed(err)
	}
	if err := s.writer.exec(setIncremental); err != nil {
		return classed(err)
	}
	return classed(s.patiently(ctx, func() error { return s.writer.exec("VACUUM") }))
}

// shrink gives room back after a prune. That it fails harms nobody: events to come use the room, and the next prune tries again.
func (s *Store) shrink(ctx context.Context) {
	for range shrinkSteps {
		if more, err := s.shrinkOnce(ctx); err != nil || !more {
			return
		}
	}
}

func (s *Store) shrinkOnce(ctx context.Context) (more bool, err error) {
	err = s.transact(ctx, func(w *writer) error {
		free, err := number(w.query, freeQuery)
		if err != nil {
			return err
		}
		pages, err := number(w.query, pagesQuery)
		if err != nil {
			return err
		}
		spare := free - max(keptPages, (pages-free)/keptShare)
		if spare <= 0 {
			return nil
		}
		more = spare > shrinkPages
		return w.exec(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", min(spare, shrinkPages))) // of a file that does not shrink it is nothing
	})
	return more, err
}
