package sqlite

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// code is SQLite's extended result code; 0 where the error is not SQLite's.
func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// primary is the class of an extended result code.
func primary(code int) int { return code & 0xff }

func isBusy(err error) bool { return primary(code(err)) == lib.SQLITE_BUSY }

// isTaken tells that a row could not be written since its key is there already.
func isTaken(err error) bool {
	switch code(err) {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY, lib.SQLITE_CONSTRAINT_ROWID:
		return true
	}
	return false
}

// isDamaged tells a file that SQLite cannot read as a database.
func isDamaged(err error) bool {
	c := primary(code(err))
	return c == lib.SQLITE_NOTADB || c == lib.SQLITE_CORRUPT || code(err) == lib.SQLITE_IOERR_SHORT_READ
}

// isFull tells that there was no room for a write. A quota shows as a failed write.
func isFull(err error) bool {
	return primary(code(err)) == lib.SQLITE_FULL || code(err) == lib.SQLITE_IOERR_WRITE ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// classed gives an error of SQLite the class that callers branch on.
func classed(err error) error {
	switch {
	case err == nil:
		return nil
	case isFull(err), code(err) == lib.SQLITE_IOERR_SHMSIZE:
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	return err
}

// atFault is an error of one call alone: the store is as well as before.
type atFault struct{ error }

// ofCall gives what refuses one call, as its caller is to see it. It is false for errors that are the store's.
func ofCall(err error) (error, bool) {
	var fault atFault
	if errors.As(err, &fault) {
		return fault.error, true
	}
	var corrupt *events.Corrupt
	return err, errors.As(err, &corrupt)
}

// commitError is what is known after COMMIT failed. A write that found no room ends before the frame that makes the commit valid, so
// nothing was kept. After anything else, a failed fsync or a wal-index that could not grow, that frame may lie on the disk, and who
// opens the file after a crash would find it.
func commitError(err error) error {
	if isFull(err) {
		return classed(err)
	}
	return fmt.Errorf("%w: commit: %w", store.ErrUnknown, err)
}
