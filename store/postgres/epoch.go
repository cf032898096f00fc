package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
	"github.com/jackc/pgx/v5"
)

// This file tells the log from one that another server went on with. A backup that is restored, and a replica that takes over without the last commits,
// give positions once more that somebody has read past.
//
// So the log has epochs. Whenever the server was started, or is another one, the first who writes finds that nobody has written that down, and begins
// an epoch at the newest event that there is: before anything else is appended, since each commit asks. Most times nothing was lost, and the
// epoch only says so. A cursor names the epoch that its position lies in. It is good up to where the next epoch begins: what it has passed beyond that
// is not there any more. One of an epoch that nobody has heard of comes from a future that was lost.

// epoch is a time in which nothing of the log was lost.
type epoch struct {
	id     string    // in cursors; empty for the first
	begin  int64     // the position of the newest event when it began
	at     time.Time // by the server's clock
	server string    // whose start it is of
	doubt  int64     // up to there, this process may have read other events before it began
}

// epochs is what a store knows of them. A list is never changed, only replaced.
type epochs struct {
	turn   sync.Mutex // of whoever reads them, or begins one: what is read later is taken in later
	mu     sync.Mutex
	list   []epoch // in order
	server string  // that is written down, or empty
	given  int64   // the highest position of an event that was read here
}

const (
	epochColumns = "id, begin, at, server"
	epochsQuery  = "SELECT " + epochColumns + " FROM @epochs ORDER BY ordinal"
	newestEpoch  = "SELECT id FROM @epochs ORDER BY ordinal DESC LIMIT 1"
	serverQuery  = "SELECT " + serverText
	withinQuery  = "SELECT id, " + serverText + " FROM @epochs ORDER BY ordinal DESC LIMIT 1"
	epochWrite   = "INSERT INTO @epochs (ordinal, id, begin, at, server, history, fences) SELECT coalesce(max(ordinal), -1) + 1, $1, $2, $3::bigint, $4, $5," +
		" greatest(coalesce(max(fences), 0), ($3::bigint - coalesce(min(at), $3::bigint)) * 4096 / 1000000 - (SELECT last_value FROM @fences)) FROM @epochs"

	// What identifies the history of a server's files, for people: roles may be kept from asking.
	historyAsked = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE') AND has_function_privilege('pg_walfile_name(pg_lsn)', 'EXECUTE')"
	historyQuery = "SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)"

	// A sequence that stands before what was drawn of it, as where it was not restored with the tables, would give numbers twice.
	mendBlocks = "SELECT setval('@blocks', $1) FROM @blocks WHERE last_value < $1 OR last_value = $1 AND NOT is_called"
	mendFences = "SELECT setval('@fences', t.n) FROM @fences, (SELECT max(token) >> 14 AS n FROM @permits) t WHERE t.n > last_value + " + fencesSkipped
	// fencesSkipped is by how much tokens begin higher in the newest epoch, counted in calls that draw some: those that were given in what is lost of
	// the log were shown to others, who believe the highest. With what is drawn it comes to 4096 for each second since the first epoch began, and as much
	// for each part of one; nobody draws as many: so every token is lower than the first of whatever epoch begins later, also where one of them is lost.
	fencesSkipped = "coalesce((SELECT fences FROM @epochs ORDER BY ordinal DESC LIMIT 1), 0)"
)

// known is the epochs as they are known now.
func (e *epochs) known() []epoch {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.list
}

// of is the server whose start is written down, for commits.
func (e *epochs) of() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.server
}

// gave takes in that events up to a position were read here.
func (e *epochs) gave(position int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.given = max(e.given, position)
}

// learn takes in a list that was read.
func (e *epochs) learn(list []epoch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range list {
		if j := slices.IndexFunc(e.list, func(o epoch) bool { return o.id == list[i].id }); j >= 0 {
			list[i].doubt = e.list[j].doubt
		} else if len(e.list) > 0 && e.given > list[i].begin {
			list[i].doubt = e.given
		}
	}
	e.list = list
}

// upTo is the epochs up to one, which a look found to be the newest.
func upTo(list []epoch, id string) []epoch {
	return list[:slices.IndexFunc(list, func(e epoch) bool { return e.id == id })+1]
}

// newest is the name of the newest epoch.
func newest(list []epoch) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1].id
}

// cursorIn is the cursor at a position, by the epoch that it lies in. at is when the event there was decided, or zero: who has read it before an epoch
// began, and asks afterwards, has not read what stands there now.
func (s *Store) cursorIn(list []epoch, position int64, at time.Time) store.Cursor {
	for i := len(list) - 1; i > 0; i-- {
		e := &list[i]
		if e.begin < position && (position > e.doubt || at.IsZero() || !at.Before(e.at)) {
			return store.CursorIn(s.id, e.id, position)
		}
	}
	return store.CursorAt(s.id, position)
}

// cursorAt is the cursor at a position of what is known now.
func (s *Store) cursorAt(position int64) store.Cursor {
	return s.cursorIn(s.epochs.known(), position, time.Time{})
}

// lasts refuses a cursor that has passed what is not in the log any more. A standby may not have heard of an epoch yet.
func (s *Store) lasts(cursor store.Cursor, position int64, l *look) error {
	list, name := s.epochs.known(), cursor.Epoch()
	i := slices.IndexFunc(list, func(e epoch) bool { return e.id == name })
	switch {
	case cursor == "", i < 0 && (name == "" || l.standby):
		return nil
	case i < 0:
		return fmt.Errorf("cursor %q: it was given in a time of which this log knows nothing: a backup was restored, or a server took over without the newest"+
			" commits, so that what was read may be there no more; read on from an older cursor or from the beginning: %w", string(cursor), store.ErrAhead)
	case i+1 < len(list) && position > list[i+1].begin:
		next := list[i+1]
		return fmt.Errorf("cursor %q: events that it has passed are not in the log any more: since %s another start of the server, or another server, goes on behind"+
			" cursor %q, which is as far as what was read still holds: %w", string(cursor), next.at.Format(time.RFC3339),
			string(s.cursorIn(list, next.begin, time.Time{})), store.ErrAhead)
	}
	return nil
}

// errEpoch says that an epoch has begun since a look, or that another server was asked: what the look found is not so any more, or not so there.
var errEpoch = errors.New("the server was started anew, or is another one")

// within makes sure that what was asked before is of the server and the epoch that a look found. A connection string, or what stands between, may lead
// to a server and its standbys, which do not have the same at the same time.
func (p *pipeline) within(l *look) {
	r := newRecord("id, server")
	p.query(r, func() error {
		if r.text(0) != l.epoch || r.text(1) != l.server {
			return errEpoch
		}
		return r.err
	}, withinQuery)
}

// knows makes sure that the epoch is known which a look found to be the newest.
func (s *Store) knows(ctx context.Context, l *look) error {
	if newest(s.epochs.known()) == l.epoch {
		return nil
	}
	return s.loadEpochs(ctx)
}

// loadEpochs learns which epochs there are.
func (s *Store) loadEpochs(ctx context.Context) error {
	s.epochs.turn.Lock()
	defer s.epochs.turn.Unlock()
	var list []epoch
	err := s.asking(ctx, func(p *pipeline) {
		list = nil
		p.epochs(&list)
	})
	if err == nil {
		s.epochs.learn(list)
	}
	return err
}

func (p *pipeline) epochs(list *[]epoch) {
	r := newRecord(epochColumns)
	p.query(r, func() error {
		*list = append(*list, epoch{id: r.text(0), begin: r.whole(1, 0, math.MaxInt64), at: r.time(2), server: r.text(3)})
		return damaged(events.LogEntity(), "its epochs", r.err)
	}, epochsQuery)
}

// recognize makes sure that the start of the server is written down, which begins an epoch where nobody has done so.
func (s *Store) recognize(ctx context.Context) error {
	history, err := s.history(ctx)
	if err != nil {
		return err
	}
	s.epochs.turn.Lock() // before the connection: whoever has the turn wants one
	defer s.epochs.turn.Unlock()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(conn)
	p := s.pipeline()
	p.begin(beginWrite)
	p.exec("SELECT pg_advisory_xact_lock($1)::text", s.lockKey("epochs", ""))
	var list []epoch
	var e epoch
	p.epochs(&list)
	r := newRecord("server")
	p.query(r, func() error { e.server = r.text(0); return r.err }, serverQuery)
	s.askTime(p, &e.at)
	if err := p.run(ctx, conn.Conn()); err != nil {
		return err
	}
	if len(list) == 0 || list[len(list)-1].server != e.server {
		if list, err = s.beginEpoch(ctx, conn.Conn(), list, e, history); err != nil {
			return err
		}
	}
	p = s.pipeline()
	p.exec("COMMIT")
	if err := p.run(ctx, conn.Conn()); err != nil {
		return err
	}
	s.epochs.learn(list)
	s.epochs.mu.Lock()
	s.epochs.server = e.server
	s.epochs.mu.Unlock()
	return nil
}

// beginEpoch begins one at the newest event that there is: nobody appends another before it is committed.
func (s *Store) beginEpoch(ctx context.Context, conn *pgx.Conn, list []epoch, e epoch, history string) ([]epoch, error) {
	var last decisionEnd
	var gone pruned
	p := s.pipeline()
	end, edge := newRecord(endColumns), newRecord(prunedColumns)
	p.query(end, func() error { return last.read(end) }, newestQuery)
	p.query(edge, func() error {
		gone = edge.pruned(0)
		return damaged(events.LogEntity(), "up to where it is pruned", edge.err)
	}, prunedQuery)
	if err := p.run(ctx, conn); err != nil {
		return nil, err
	}
	e.begin = max(last.position(), gone.through)
	p = s.pipeline()
	if len(list) > 0 {
		b := make([]byte, 8)
		_, _ = rand.Read(b) // never fails
		e.id = hex.EncodeToString(b)
	}
	p.exec(epochWrite, e.id, e.begin, e.at.UnixMicro(), e.server, history)
	if number := max(last.number, numberOf(gone.through)); number > 0 {
		p.exec(mendBlocks, number)
	}
	p.exec(mendFences)
	if err := p.run(ctx, conn); err != nil {
		return nil, fmt.Errorf("write down that the server was started: %w", err)
	}
	if len(list) > 0 {
		s.options.Logger.LogAttrs(ctx, slog.LevelInfo, "the server was started anew, or another one has the log: cursors beyond its end are refused from now on",
			slog.String("store", s.String()), slog.Int64("end", e.begin), slog.String("history", history))
	}
	return append(list, e), nil
}

// history is what identifies the history of the server's files: its system identifier and its timeline; empty where the role may not ask, or the
// server has no such files.
func (s *Store) history(ctx context.Context) (text string, err error) {
	asked := false
	err = s.asking(ctx, func(p *pipeline) {
		r := newRecord("asked")
		p.query(r, func() error { asked = r.flag(0); return r.err }, historyAsked)
	})
	if err != nil || !asked {
		return "", err
	}
	err = s.asking(ctx, func(p *pipeline) {
		r := newRecord("history")
		p.query(r, func() error { text = r.text(0); return r.err }, historyQuery)
	})
	if refused(err) {
		return "", nil
	}
	return text, err
}
