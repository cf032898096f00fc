package sqlite_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/fsm"
	"github.com/foundling-go/foundling/internal/calls"
	"github.com/foundling-go/foundling/store"
	"github.com/foundling-go/foundling/store/sqlite"
)

func space(t *testing.T, s *sqlite.Store) sqlite.Space {
	t.Helper()
	space, err := s.Space(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func TestRoomOfPrunedEventsIsGivenBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{Synchronous: sqlite.SynchronousNormal})
	for range 100 {
		lives(t, s, 100)
	}
	before := space(t, s)
	let(t, s, time.Now())
	after := space(t, s)
	if !before.Shrinks || after.Bytes > before.Bytes/3 || after.Free > 1<<20 {
		t.Errorf("%+v before, %+v once all has gone", before, after)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := size(t, path); got != after.Bytes {
		t.Errorf("the file has %d bytes, want %d", got, after.Bytes)
	}
	folded(t, open(t, path, sqlite.Options{}))
	if got := one(t, raw(t, path), "PRAGMA integrity_check"); got != "ok" {
		t.Error(got)
	}
}

// A file that somebody made from a dump, or that gave its room back with each commit.
func TestFileThatBeganInSomeOtherWayIsPrunedToo(t *testing.T) {
	for mode, shrinks := range map[string]bool{"NONE": false, "FULL": true} {
		t.Run(mode, func(t *testing.T) {
			path := made(t)
			db := raw(t, path)
			do(t, db, "PRAGMA auto_vacuum = "+mode)
			do(t, db, "VACUUM")
			do(t, db, "DELETE FROM words") // so that something is to be made when it is opened
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			s := open(t, path, sqlite.Options{Synchronous: sqlite.SynchronousNormal})
			if got := space(t, s); got.Shrinks != shrinks {
				t.Errorf("%+v, want one that shrinks: %v", got, shrinks)
			}
			for range 40 {
				lives(t, s, 100)
			}
			full := space(t, s)
			let(t, s, time.Now())
			for range 25 {
				lives(t, s, 100)
			}
			if got := space(t, s); got.Bytes > full.Bytes {
				t.Errorf("%+v before, %+v after the room was used again", full, got)
			}
			let(t, s, time.Now())
			if err := s.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := space(t, s); !got.Shrinks || got.Bytes > full.Bytes/4 || got.Free > 0 {
				t.Errorf("%+v before, %+v once it is compact", full, got)
			}
			folded(t, s)
			commit(t, s, enqueueing("mail", 1))
		})
	}
}

// What is erased is not to be found in the file any more. The write-ahead log has it until it is taken home and written over.
func TestErasedContentsAreNotLeftInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{})
	secret := strings.Repeat("forget me ", 3000) // some pages
	var drafts []fsm.Draft
	var payloads []store.Payload
	for i := range 20 {
		p := store.Payload{Salt: [16]byte{byte(i)}, Bytes: fmt.Appendf(nil, "%d %s", i, secret[:1+i*1500])}
		payloads = append(payloads, p)
		facts := events.Facts{Size: len(p.Bytes), Commitment: events.Commitment(p.Salt, p.Bytes)}
		drafts = append(drafts, fsm.Draft{ID: origin().ID, EnqueueMessage: fsm.EnqueueMessage{Topic: "mail", Payload: facts}})
	}
	call, _ := calls.Enqueue(origin(), fsm.Enqueue{Topics: map[string]fsm.TopicStart{"mail": {}}, Drafts: drafts}, payloads)
	commit(t, s, call)
	rows := commit(t, s, claiming("mail", 20)).Rows
	commit(t, s, resulting(t, rows, "forget me too"))
	kept := rows[0].Entity.ID
	var ids []events.ID
	for _, row := range rows[1:] {
		ids = append(ids, row.Entity.ID)
	}
	erase, _ := calls.Erase(origin(), fsm.Erase{IDs: ids, By: "a test", Detail: "they asked for it"})
	commit(t, s, erase)
	for _, id := range ids {
		if got := contents(t, s, id); got != "-/-" {
			t.Errorf("contents %.20q", got)
		}
	}
	if got := contents(t, s, kept); !strings.HasSuffix(got, "/forget me too") {
		t.Errorf("contents %.20q of the message that was not erased", got)
	}
	folded(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(read(t, path), []byte("forget me")); n != 1 {
		t.Errorf("what was erased is found %d times in the file, want once, as the result that was kept", n)
	}
}
