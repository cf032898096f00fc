package sqlite

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/foundling-go/foundling/store"
)

// edition is the schema that the file was seen to have. A newer program may migrate it while this one has it open, and from then on nothing
// of it means what this one knows.
type edition struct {
	cookie atomic.Int64 // SQLite's own count of changes of the schema, when it was found to be one that this program knows
}

const (
	cookieQuery  = "PRAGMA schema_version"
	versionQuery = "SELECT coalesce(max(version_id), 0) FROM " + versionTable + " WHERE is_applied = 1"
)

// check makes sure that this program knows the schema of what it is about to read or write.
func (e *edition) check(from source) error {
	cookie, err := number(from, cookieQuery)
	if err != nil || cookie == e.cookie.Load() {
		return err
	}
	version, err := number(from, versionQuery)
	if err == nil {
		err = checkVersion(version)
	}
	if err == nil {
		e.cookie.Store(cookie)
	}
	return err
}

// checkVersion refuses a schema version that this program does not know.
func checkVersion(version int64) error {
	if version > SchemaVersion {
		return fmt.Errorf("%w: it has schema version %d, this program knows versions up to %d", store.ErrNewer, version, SchemaVersion)
	}
	return nil
}

// number is the one number of a query.
func number(from source, query string) (n int64, err error) {
	r := newRecord("number")
	err = from(r, func() error {
		n = r.whole(0, 0, math.MaxInt64)
		return r.err
	}, query)
	return n, err
}
