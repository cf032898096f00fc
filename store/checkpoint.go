package store

import (
	"context"
	"fmt"
	"time"
)

// MaxView is the largest view that an engine must take with a checkpoint, in bytes.
const MaxView = 64 << 20

// Shelf is offered by engines that keep checkpoints of durable projections: what each had come to, and up to where. They are no part of the log.
type Shelf interface {
	// Save keeps a checkpoint behind the one it follows: its Sequence is one more than that of the newest kept of its name and version, 1 for
	// the first; else it is ErrMoved and nothing is kept. View and cursor are kept together or not at all. It gives the checkpoint back with At.
	Save(ctx context.Context, c Checkpoint) (Checkpoint, error)
	// Checkpoints lists what is kept, without views, by name, version, then sequence.
	Checkpoints(ctx context.Context, f CheckpointFilter) ([]Checkpoint, error)
	// View is a checkpoint with its view. ErrMoved where it is not kept any more; a *events.Corrupt where it is not what was saved.
	View(ctx context.Context, k CheckpointKey) (Checkpoint, error)
	// Drop lets go of checkpoints. One that is not there is no error.
	Drop(ctx context.Context, keys ...CheckpointKey) error
}

// CheckpointKey names a checkpoint.
type CheckpointKey struct {
	Name     string // of the projection, at most MaxName bytes
	Version  int    // of its code: a new version builds beside the old one
	Sequence int    // 1 for the first of its name and version
}

// Checkpoint is what a projection had come to.
type Checkpoint struct {
	CheckpointKey
	Cursor Cursor    // behind the last event that the view has taken
	At     time.Time // the store's time of saving; set by the engine
	View   []byte    // opaque to the engine, which keeps a checksum over it and the rest
}

// Check refuses a checkpoint that no engine may keep. Engines call it before they keep one.
func (c Checkpoint) Check() error {
	if err := checkName("projection", c.Name); err != nil {
		return err
	}
	if c.Version < 1 || c.Sequence < 1 {
		return fmt.Errorf("checkpoint of projection %q: version %d, sequence %d: want at least 1 of both", c.Name, c.Version, c.Sequence)
	}
	if len(c.View) > MaxView {
		return fmt.Errorf("checkpoint of projection %q: a view of %d bytes, at most %d: %w", c.Name, len(c.View), MaxView, ErrTooLarge)
	}
	return nil
}

// CheckpointFilter selects checkpoints. Its zero passes all.
type CheckpointFilter struct {
	Name    string // of this name alone, unless empty
	Version int    // of this version alone, unless 0
	Newest  bool   // the newest of each name and version alone
}
