package lines

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver behind sql.Open("sqlite", …)
)

// chunkRows is how many different records one statement counts.
const chunkRows = 500

// The table is a temporary database of its own: SQLite makes its file when the
// cache overflows, has it unlinked from the start, and drops it with the
// connection. It need not survive a fault, so it keeps no journal.
const (
	tallyCache   = "PRAGMA cache_size = -1024" // KiB
	tallyJournal = "PRAGMA journal_mode = OFF"
	tallyFile    = "PRAGMA temp_store = FILE"
	tallyTable   = "CREATE TABLE tally (sum BLOB PRIMARY KEY, seen INTEGER NOT NULL) WITHOUT ROWID"

	tallyAdd = "INSERT INTO tally (sum, seen) VALUES %s" +
		" ON CONFLICT (sum) DO UPDATE SET seen = tally.seen + excluded.seen RETURNING sum, seen"
	tallyRow = "(?, ?)"
)

// Tally counts how many equal records came before each one in one pass over
// the input. Its memory is the same for ten records and for ten million; the
// counts lie in a temporary file, some 35 bytes for each different record, in
// $SQLITE_TMPDIR, $TMPDIR, /var/tmp or /tmp. It is for one goroutine.
type Tally struct {
	db   *sql.DB
	full *sql.Stmt // counts chunkRows different records
	err  error     // what broke it: the counts can no longer be trusted
}

// NewTally returns an empty Tally, to be closed.
func NewTally() (*Tally, error) {
	db, err := sql.Open("sqlite", "") // no name: temporary, seen by this connection only
	if err != nil {
		return nil, fmt.Errorf("open tally: %w", err)
	}
	db.SetMaxOpenConns(1) // a second connection would see another database
	t := &Tally{db: db}
	if err := t.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("open tally: %w", err), db.Close())
	}
	return t, nil
}

func (t *Tally) prepare() error {
	for _, statement := range []string{tallyCache, tallyJournal, tallyFile, tallyTable} {
		if _, err := t.db.Exec(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	var err error
	t.full, err = t.db.Prepare(addStatement(chunkRows))
	return err
}

// Add counts the records and returns for each, in order, how many equal ones
// came before it: in this call and in all earlier ones. Some hundred at a time
// is fastest. After an error, such as a full disk, the counts are unknown, and
// every later Add returns that error.
func (t *Tally) Add(sums []Sum) ([]int, error) {
	before := make([]int, 0, len(sums))
	for chunk := range slices.Chunk(sums, chunkRows) {
		if t.err != nil {
			return nil, t.err
		}
		counts, err := t.count(chunk)
		if err != nil {
			t.err = fmt.Errorf("tally: %w", err)
			return nil, t.err
		}
		for _, sum := range chunk {
			before = append(before, counts[sum])
			counts[sum]++
		}
	}
	return before, nil
}

// Close drops the counts and their file.
func (t *Tally) Close() error {
	return errors.Join(t.full.Close(), t.db.Close())
}

// count adds the chunk and returns how often each record was seen before it.
func (t *Tally) count(chunk []Sum) (map[Sum]int, error) {
	added := make(map[Sum]int, len(chunk))
	for _, sum := range chunk {
		added[sum]++
	}
	rows, err := t.query(added)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	before := make(map[Sum]int, len(added))
	var key sql.RawBytes
	for rows.Next() {
		var seen int
		if err := rows.Scan(&key, &seen); err != nil {
			return nil, err
		}
		sum := Sum(key)
		before[sum] = seen - added[sum]
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(before) != len(added) {
		return nil, fmt.Errorf("%d counts for %d records", len(before), len(added))
	}
	return before, nil
}

func (t *Tally) query(added map[Sum]int) (*sql.Rows, error) {
	args := make([]any, 0, 2*len(added))
	for sum, n := range added {
		args = append(args, sum[:], n)
	}
	// A context that can end would cost a goroutine for each statement; these
	// take milliseconds.
	ctx := context.Background()
	if len(added) == chunkRows {
		return t.full.QueryContext(ctx, args...)
	}
	return t.db.QueryContext(ctx, addStatement(len(added)), args...)
}

func addStatement(rows int) string {
	return fmt.Sprintf(tallyAdd, strings.Repeat(tallyRow+", ", rows-1)+tallyRow)
}
