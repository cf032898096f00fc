package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5/pgconn"
)

// The codes of errors of the server that are told apart.
const (
	codeMoved       = "FD001" // must: what a commit stands on is not as it was
	codeBeyond      = "FD002" // within: the number of a commit lies in no known range
	codeStarted     = "FD003" // started: nobody has written down yet that the server was started
	codeTaken       = "23505" // unique_violation
	codeNoRange     = "23514" // check_violation: no partition of a table
	codeDeadlock    = "40P01"
	codeSerial      = "40001"
	codeLocked      = "55P03" // lock_not_available
	codeFull        = "53100" // disk_full
	codeReadOnly    = "25006" // read_only_sql_transaction
	codeNoTable     = "42P01"
	codeProtocol    = "08P01" // protocol_violation: a pooler takes no settings
	codeDenied      = "42501" // insufficient_privilege
	codeNoSchema    = "3F000"
	codeIdleTooLong = "25P03" // idle_in_transaction_session_timeout
)

// code is the server's code of an error; empty where the error is not the server's.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// refused reports whether the server has refused a statement and goes on with the next: then the transaction has come to nothing.
func refused(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.SeverityUnlocalized == "ERROR"
}

// classed gives an error of the server the class that callers branch on.
func (s *Store) classed(err error) error {
	if err == nil {
		return nil
	}
	switch code(err) {
	case codeFull:
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	case codeReadOnly:
		return fmt.Errorf("the server takes no writes: it is a standby, or default_transaction_read_only is on; connect to its primary,"+
			" or have that switched off for this role and database: %w", err)
	case codeDenied, codeNoSchema:
		return fmt.Errorf("the role may not do all that a store asks of it: let it own schema %s, or give it the rights that the documentation of"+
			" package postgres names and have a role that owns the schema work beside it: %w", s.options.Schema, err)
	}
	if s.isClosed() && !errors.Is(err, store.ErrClosed) && strings.Contains(err.Error(), "closed pool") {
		return store.ErrClosed
	}
	return err
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
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

// ended reports whether a context is what ended a call.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
