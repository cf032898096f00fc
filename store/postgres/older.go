package postgres

import (
	"context"
	"errors"
	"fmt"
)

// Why a store is not opened, for callers that tell people what to do.
var (
	// ErrDSN is the error of a connection string that is none. It repeats nothing of it: it may hold a password.
	ErrDSN = errors.New("the connection string is none, or one of its settings is none")
	// ErrOptions is the error of options that cannot be meant. It names the option, its value and what it may be.
	ErrOptions = errors.New("the options of the store")
	// ErrServer is the error of a server that is too old.
	ErrServer = errors.New("the server is of no version that a store can be on")
)

// OlderError is the error of a schema that has no store, or one of an older version, and was not to be migrated. Nothing of it was touched.
type OlderError struct {
	Version int // of the store's schema, 0 where there is no store; this program's is SchemaVersion
}

// Error names both versions.
func (e *OlderError) Error() string {
	const hint = "run foundling migrate with a role that may"
	if e.Version == 0 {
		return "no store was made in the schema yet: " + hint
	}
	return fmt.Sprintf("the store has schema version %d, which is older than this program's, %d, and was not to be migrated: %s", e.Version, SchemaVersion, hint)
}

// Version is the version of the schema's store, 0 where there is none. It writes nothing, and may be asked of a standby. A schema that holds something
// else is store.ErrForeign; a store of a newer version is store.ErrNewer.
func Version(ctx context.Context, dsn string, o Options) (int, error) {
	o.NoMigrate = true
	s, err := connect(ctx, dsn, o)
	if err != nil {
		return 0, fmt.Errorf("postgres: version: %w", err)
	}
	defer s.pool.Close()
	_, err = s.inspect(ctx)
	var older *OlderError
	switch {
	case errors.As(err, &older):
		return older.Version, nil
	case err != nil:
		return 0, fmt.Errorf("postgres: version %s: %w", s, s.classed(err))
	}
	return SchemaVersion, nil
}
