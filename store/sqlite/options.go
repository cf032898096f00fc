package sqlite

import (
	"fmt"
	"time"
)

// Synchronous is how much of a commit is on the disk when it is answered.
type Synchronous uint8

const (
	// SynchronousFull has every answered commit on the disk. It is the default.
	SynchronousFull Synchronous = iota
	// SynchronousNormal leaves it to the operating system when a commit reaches the disk. A process that dies loses nothing; a power cut
	// may take the newest commits. Single commits are several times as fast.
	SynchronousNormal
)

// String is SQLite's own word.
func (s Synchronous) String() string {
	switch s {
	case SynchronousFull:
		return "FULL"
	case SynchronousNormal:
		return "NORMAL"
	}
	return fmt.Sprintf("synchronous(%d)", uint8(s))
}

// Options are the store's settings. The zero value works.
type Options struct {
	Clock       func() time.Time // the store's time; nil is time.Now. All processes of a store should have the same
	Synchronous Synchronous
	// MustExist has Open find a store and never make one: where there is no file that is fs.ErrNotExist, and one in which no store was ever
	// made is store.ErrForeign. Neither is touched.
	MustExist bool
	// NoMigrate has Open leave a store of an older schema as it is, which is an *OlderError: a process that only looks must not end the work of
	// those that know that schema alone.
	NoMigrate bool
}

// OlderError is the error of a store of an older schema that was not to be migrated. Nothing of it was touched.
type OlderError struct {
	Version int // of the store's schema; this program's is SchemaVersion
}

// Error names both versions.
func (e *OlderError) Error() string {
	return fmt.Sprintf("the store has schema version %d, which is older than this program's, %d, and was not to be migrated", e.Version, SchemaVersion)
}

func (o Options) validate() error {
	if o.Synchronous > SynchronousNormal {
		return fmt.Errorf("option Synchronous: %s, want %s or %s", o.Synchronous, SynchronousFull, SynchronousNormal)
	}
	return nil
}
