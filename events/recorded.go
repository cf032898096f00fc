package events

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// Transition is an event with what the rules made of it. A refusal has version 0 and the same state on both sides.
type Transition struct {
	Event   Event
	Version int
	From    State
	To      State
}

// Recorded is an event as it stands in the log.
type Recorded struct {
	Transition
	Position int64
	Entity   Entity
	Commit   *Commit // shared by all events of one commit; never nil
}

// At is the store's time of the commit.
func (r Recorded) At() time.Time { return r.Commit.At }

// Command is what somebody asked of the store, recorded with the commit it led to. Its parameters are those that the commit's events
// do not carry themselves: with both, the commit can be decided again.
type Command struct {
	Name   string // an imperative, as in "claim"
	Params []byte // canonical JSON object; nil is none
	Actor  string // who asked: a worker's incarnation, or a person with what they used
	Trace  string // W3C traceparent of the caller, if it has one
}

// Commit is what all events of one commit share.
type Commit struct {
	ID       ID
	At       time.Time // the store's time at which it was decided, in whole microseconds
	Count    int       // of its events
	Command  Command
	Checksum uint32 // over all of the above and over the checksums of its events, in their order
}

// VisitFields names the fields that are stored as the commit's body. ID, At, Count and Checksum have columns of their own.
func (c *Commit) VisitFields(f *Fields) {
	f.Text("command", &c.Command.Name)
	f.Raw("params", &c.Command.Params)
	f.Text("actor", &c.Command.Actor)
	f.Text("trace", &c.Command.Trace)
}

// Stored is an event as an engine keeps it: column by column, its body as exact bytes.
type Stored struct {
	Position int64 // given by the engine; no part of the checksum, the order of a commit's events is kept by the commit's
	Entity   Entity
	Version  int
	Type     Type
	Schema   int
	From, To State
	Body     []byte
	Checksum uint32
}

// StoredCommit is a commit as an engine keeps it.
type StoredCommit struct {
	ID       ID
	At       time.Time
	Count    int
	Body     []byte
	Checksum uint32
}

// Corrupt is the error of stored data that is not what was written. Position is 0 where no event is at fault.
type Corrupt struct {
	Entity   Entity
	Version  int
	Position int64
	Detail   string
	// Begins is the position of the first event that cannot be read for it, such as that of its commit; 0 is not known. Positions may have gaps, so
	// that whoever passes over what is damaged cannot count on to it.
	Begins int64
}

// Error names entity, version and position.
func (c *Corrupt) Error() string {
	return fmt.Sprintf("corrupt log: %s version %d at position %d: %s", c.Entity, c.Version, c.Position, c.Detail)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode gives a transition of an entity its stored form, once and for ever.
func Encode(entity Entity, t Transition) Stored {
	s := Stored{
		Entity: entity, Version: t.Version, Type: t.Event.Type(), Schema: t.Event.Type().Schema(),
		From: t.From, To: t.To, Body: AppendFields(nil, t.Event),
	}
	s.Checksum = s.sum()
	return s
}

// sum is the CRC-32C over body and columns.
func (s *Stored) sum() uint32 {
	var b [40]byte
	b[0] = byte(s.Entity.Kind)
	copy(b[1:17], s.Entity.ID[:])
	binary.BigEndian.PutUint64(b[17:], uint64(s.Version))
	binary.BigEndian.PutUint16(b[25:], uint16(s.Type))
	binary.BigEndian.PutUint64(b[27:], uint64(s.Schema))
	b[35], b[36] = byte(s.From), byte(s.To)
	sum := crc32.Update(0, castagnoli, b[:37])
	sum = crc32.Update(sum, castagnoli, []byte(s.Entity.Name))
	return crc32.Update(sum, castagnoli, s.Body)
}

// Decode checks the stored form and gives back the event. An unknown type or schema version is no error: the event is an [*Unknown].
func (s Stored) Decode(commit *Commit) (Recorded, error) {
	r := Recorded{
		Transition: Transition{Version: s.Version, From: s.From, To: s.To},
		Position:   s.Position, Entity: s.Entity, Commit: commit,
	}
	if sum := s.sum(); sum != s.Checksum {
		return r, s.corrupt("checksum %08x is stored, its content has %08x", s.Checksum, sum)
	}
	info := s.Type.info()
	if info == nil || s.Schema < 1 || s.Schema > info.schema {
		r.Event = &Unknown{Code: s.Type, Schema: s.Schema, Body: s.Body}
		return r, nil
	}
	r.Event = info.blank()
	if err := ReadFields(s.Body, r.Event); err != nil {
		return r, s.corrupt("%s: %v", s.Type, err)
	}
	if !s.From.Known() || !s.To.Known() {
		return r, s.corrupt("%s: from %s to %s: unknown state", s.Type, s.From, s.To)
	}
	return r, nil
}

func (s *Stored) corrupt(format string, args ...any) error {
	return &Corrupt{Entity: s.Entity, Version: s.Version, Position: s.Position, Detail: fmt.Sprintf(format, args...)}
}

// Seal gives a commit its stored form over its events, which are encoded already.
func Seal(c Commit, stored []Stored) StoredCommit {
	s := StoredCommit{ID: c.ID, At: c.At, Count: len(stored), Body: AppendFields(nil, &c)}
	s.Checksum = s.sum(stored)
	return s
}

func (s *StoredCommit) sum(stored []Stored) uint32 {
	var b [32]byte
	copy(b[:16], s.ID[:])
	binary.BigEndian.PutUint64(b[16:], uint64(s.At.UnixMicro()))
	binary.BigEndian.PutUint64(b[24:], uint64(s.Count))
	sum := crc32.Update(0, castagnoli, b[:])
	sum = crc32.Update(sum, castagnoli, s.Body)
	for i := range stored {
		binary.BigEndian.PutUint32(b[:4], stored[i].Checksum)
		sum = crc32.Update(sum, castagnoli, b[:4])
	}
	return sum
}

// Header gives back what the commit's events share, without a look at them: for reading one entity's events, each of which has its own
// checksum. A whole commit is checked by [DecodeCommit].
func (s StoredCommit) Header() (*Commit, error) {
	commit := &Commit{ID: s.ID, At: s.At.UTC(), Count: s.Count, Checksum: s.Checksum}
	if err := ReadFields(s.Body, commit); err != nil {
		return nil, fmt.Errorf("commit %s: %w", s.ID, err)
	}
	return commit, nil
}

// DecodeCommit checks a stored commit with all its events, in the order of their positions, and gives them back. An error names the
// first event that is not what was written.
func DecodeCommit(s StoredCommit, stored []Stored) ([]Recorded, error) {
	var at Stored // where to say that the commit itself is wrong
	if n := len(stored); n > 0 {
		at = stored[n-1]
	}
	commit, err := s.Header()
	if err != nil {
		return nil, at.corrupt("%v", err)
	}
	list := make([]Recorded, len(stored))
	for i, event := range stored {
		if list[i], err = event.Decode(commit); err != nil {
			return nil, err
		}
	}
	if len(stored) != s.Count {
		return nil, at.corrupt("commit %s holds %d events here, %d were written", s.ID, len(stored), s.Count)
	}
	if sum := s.sum(stored); sum != s.Checksum {
		return nil, at.corrupt("commit %s: checksum %08x is stored, its content has %08x", s.ID, s.Checksum, sum)
	}
	return list, nil
}
