package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// This file is the stored form of the log.

// blockBits is how many positions the number of a transaction has: the position of its i-th event is number<<blockBits | i.
const (
	blockBits = 14
	blockSize = 1 << blockBits
)

// numberOf is the number of the transaction that kept the event at a position.
func numberOf(position int64) int64 { return position >> blockBits }

// firstOf is the position of the first event of a transaction.
func firstOf(number int64) int64 { return number << blockBits }

// stream is the value of an entity's column events.stream: the bytes of a message's id, the text of everything else, behind which nothing else
// has 16 bytes: a text of that length gets a zero byte.
func stream(e events.Entity) []byte {
	if e.Kind == events.KindMessage {
		return e.ID[:]
	}
	text := []byte(e.String())
	if len(text) == 16 {
		text = append(text, 0)
	}
	return text
}

// entity reads what stream writes, and nothing else.
func (r *record) entity(i int) events.Entity {
	b := r.values[i]
	if len(b) == 16 {
		return events.MessageEntity(events.ID(b))
	}
	text := string(b)
	if len(b) == 17 && b[16] == 0 {
		text = text[:16]
	}
	e, err := events.ParseEntity(text)
	if err != nil || e.Kind == events.KindMessage || string(stream(e)) != string(b) {
		r.wrong(i, fmt.Sprintf("%.40q", b), "a stream")
	}
	return e
}

const eventColumns = "position, stream, version, type, schema, from_state, to_state, body, checksum"

// event is the event of a row that begins with eventColumns.
func (r *record) event() (events.Stored, error) {
	e := events.Stored{
		Position: r.whole(0, 1, math.MaxInt64), Entity: r.entity(1),
		Type: events.Type(r.whole(3, 0, math.MaxUint16)), Schema: int(r.whole(4, 0, math.MaxUint16)),
		From: r.state(5), To: r.state(6), Body: r.expanded(7), Checksum: r.checksum(8),
	}
	if !r.null(2) {
		e.Version = r.version(2)
	}
	if r.err != nil {
		return e, &events.Corrupt{Entity: e.Entity, Version: e.Version, Position: e.Position, Detail: r.err.Error()}
	}
	return e, nil
}

const decisionColumns = "number, at, events, checksum, commits"

// decision is what the events of one transaction share.
type decision struct {
	number  int64
	at      time.Time // of its last commit
	events  int
	commits []placed
	wrong   error // what is not what was written
}

// placed is a stored commit with the position of its first event.
type placed struct {
	events.StoredCommit
	first int64
}

// next is the position behind the commit.
func (p *placed) next() int64 { return p.first + int64(p.Count) }

// decision is the one whose columns, decisionColumns, begin at i.
func (r *record) decision(i int) decision {
	d := decision{
		number: r.whole(i, 1, math.MaxInt64>>blockBits), at: r.time(i + 1), events: int(r.whole(i+2, 1, blockSize)),
	}
	sum, packed := r.checksum(i+3), r.bytes(i+4)
	if r.err == nil {
		if found := packedSum(d.at, d.events, packed); found != sum {
			r.wrong(i+4, fmt.Sprintf("content with checksum %08x", found), fmt.Sprintf("%08x", sum))
		}
	}
	if r.err == nil {
		d.commits, r.err = unpack(d.number, packed)
	}
	d.wrong = r.err
	return d
}

// at is the commit that an event of the decision belongs to; nil where there is none.
func (d *decision) commitAt(position int64) *placed {
	for i := range d.commits {
		if c := &d.commits[i]; position >= c.first && position < c.next() {
			return c
		}
	}
	return nil
}

// packedSum is a CRC-32C over the columns of a decision beside its number, which is not known when it is written.
func packedSum(at time.Time, count int, packed []byte) uint32 {
	b := binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro()))
	b = binary.BigEndian.AppendUint32(b, uint32(count))
	return crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, packed)
}

// pack puts commits one behind the other: id, time, number of events, checksum, length of the body, body.
func pack(list []*store.Recording) []byte {
	var b []byte
	for _, r := range list {
		c := &r.Commit
		b = append(b, c.ID[:]...)
		b = binary.BigEndian.AppendUint64(b, uint64(c.At.UnixMicro()))
		b = binary.BigEndian.AppendUint32(b, uint32(c.Count))
		b = binary.BigEndian.AppendUint32(b, c.Checksum)
		b = binary.BigEndian.AppendUint32(b, uint32(len(c.Body)))
		b = append(b, c.Body...)
	}
	return b
}

var errPacked = errors.New("it is cut short, or something follows it")

const packedHead = 16 + 8 + 4 + 4 + 4

// unpack takes the commits of a transaction apart.
func unpack(number int64, b []byte) (list []placed, err error) {
	next := firstOf(number)
	for len(b) > 0 {
		if len(b) < packedHead {
			return nil, errPacked
		}
		c := placed{first: next, StoredCommit: events.StoredCommit{
			ID: events.ID(b), At: time.UnixMicro(int64(binary.BigEndian.Uint64(b[16:]))).UTC(),
			Count: int(binary.BigEndian.Uint32(b[24:])), Checksum: binary.BigEndian.Uint32(b[28:]),
		}}
		size := int(binary.BigEndian.Uint32(b[32:]))
		if b = b[packedHead:]; size > len(b) || c.Count < 1 || c.Count > store.MaxEvents {
			return nil, errPacked
		}
		c.Body, b = b[:size:size], b[size:]
		list, next = append(list, c), c.next()
	}
	if len(list) == 0 || next > firstOf(number+1) {
		return nil, errPacked
	}
	return list, nil
}
