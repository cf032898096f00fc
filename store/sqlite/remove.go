package sqlite

import (
	"errors"
	"fmt"
	"os"

	"github.com/gofrs/flock"
)

// Remove removes a store with all the files beside it. It waits for nobody: a store whose writers are at work is an error and stays.
// The caller must know that no process has it open; a store that is not there is no error.
func Remove(path string) error {
	path, err := resolve(path)
	if err != nil {
		return fmt.Errorf("sqlite: remove: %w", err)
	}
	turn := flock.New(path + "-lock")
	held, err := turn.TryLock()
	if err != nil {
		return fmt.Errorf("sqlite: remove %s: %w", path, err)
	}
	if !held {
		return fmt.Errorf("sqlite: remove %s: somebody writes to it", path)
	}
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-beats", "-beats-wal", "-beats-shm", "-beats.damaged", "-workers"} {
		errs = append(errs, os.RemoveAll(path+suffix))
	}
	// Whoever waits for the lock must not take it for that of the next store at this path, so it goes while it is held. A system that
	// keeps open files from being removed has it go afterwards.
	early := os.Remove(path + "-lock")
	errs = append(errs, turn.Unlock())
	if early != nil {
		errs = append(errs, os.RemoveAll(path+"-lock"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sqlite: remove %s: %w", path, err)
	}
	return nil
}
