package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	driver "modernc.org/sqlite"
)

const (
	readerCount = 4
	// busyWait is how long SQLite itself waits for a lock. Writers come one at a time by our own lock, so busy is rare: recovery after a
	// crash, somebody with the sqlite3 shell. It is short so that a context that ends is noticed.
	busyWait = 250 * time.Millisecond
	// cacheKiB bounds the writer's page cache.
	cacheKiB = 16 << 10
	// walBytes is what is kept of the write-ahead log's file after a burst.
	walBytes = 64 << 20
)

// connect opens a file with pragmas for each of its connections.
func connect(path string, connections int, pragmas ...string) (*sql.DB, error) {
	name := filepath.ToSlash(path)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name // a drive letter
	}
	query := url.Values{"_pragma": append(pragmas, fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds())), "_error_rc": {"1"}}
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: name, RawQuery: query.Encode()}
	connector, err := driver.NewConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

func openReaders(path string) (*sql.DB, error) {
	return connect(path, readerCount+1, "query_only(1)") // one more for who watches
}

// writer is the one connection that writes, with its prepared statements. It takes no context: what has begun is not cancelled.
type writer struct {
	db    *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	texts map[bulkSize]string
	added int // ids written since the last look for old ones; at first, those of processes that ended before their look
}

func newWriter(path string, sync Synchronous) (*writer, error) {
	db, err := connect(path, 1, "synchronous("+sync.String()+")",
		fmt.Sprintf("cache_size(-%d)", cacheKiB), fmt.Sprintf("journal_size_limit(%d)", walBytes))
	return &writer{db: db, texts: map[bulkSize]string{}, added: dropAtFirst / 2}, err
}

// ready makes sure that there is a connection.
func (w *writer) ready() error {
	if w.conn != nil {
		return nil
	}
	conn, err := w.db.Conn(context.Background())
	if err != nil {
		return err
	}
	w.conn, w.stmts = conn, map[string]*sql.Stmt{}
	return nil
}

// drop ends a connection that is in no known state, and with it its transaction. The next use makes a new one.
func (w *writer) drop() error {
	if w.conn == nil {
		return nil
	}
	for _, stmt := range w.stmts {
		_ = stmt.Close() // it goes with its connection
	}
	err := w.conn.Raw(func(any) error { return sqldriver.ErrBadConn }) // which keeps it from being used again
	w.conn, w.stmts = nil, nil
	if errors.Is(err, sqldriver.ErrBadConn) {
		return nil
	}
	return err
}

func (w *writer) close() error { return errors.Join(w.drop(), w.db.Close()) }

func (w *writer) stmt(query string) (*sql.Stmt, error) {
	if stmt, ok := w.stmts[query]; ok {
		return stmt, nil
	}
	if err := w.ready(); err != nil {
		return nil, err
	}
	stmt, err := w.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	w.stmts[query] = stmt
	return stmt, nil
}

func (w *writer) exec(query string, args ...any) error {
	stmt, err := w.stmt(query)
	if err == nil {
		_, err = stmt.ExecContext(context.Background(), args...)
	}
	return err
}

// query runs a query, reads its rows one by one into r and calls found for each.
func (w *writer) query(r *record, found func() error, query string, args ...any) error {
	stmt, err := w.stmt(query)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(context.Background(), args...)
	return r.each(rows, err, found)
}
