package lines

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// The first bytes of what is hashed keep the two uses of SHA-256 apart. Never
// change them: a batch that is resumed would not know its records again.
const (
	sumDomain  = "foundling/lines/sum/1\x00"
	nameDomain = "foundling/lines/name/1\x00"
)

// Sum is what a Tally knows a record by.
type Sum [16]byte

// SumOf returns the first 128 bits of a SHA-256 of the record.
func SumOf(record []byte) Sum {
	h := sha256.New()
	h.Write([]byte(sumDomain))
	h.Write(record)
	var full [sha256.Size]byte
	return Sum(h.Sum(full[:0])[:16])
}

// Name returns the id of a record in the batch that was created at the given
// instant, of which only the millisecond counts. Occurrence is how many equal
// records came before it: 0 for the first.
//
// The id has the form of a UUIDv7: 48 bits of Unix time in milliseconds, then
// 74 bits of a SHA-256 of (occurrence, record) around version and variant. The
// same arguments give the same id for ever. Among ten million records the
// chance that any two share one is 3 in a thousand million; somebody who is
// ready to hash 2^37 records can make two that do, so compare the payload
// where that matters.
func Name(created time.Time, record []byte, occurrence int) [16]byte {
	h := sha256.New()
	h.Write([]byte(nameDomain))
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(occurrence))
	h.Write(n[:])
	h.Write(record)
	var full [sha256.Size]byte
	id := [16]byte(h.Sum(full[:0])[:16])

	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(created.UnixMilli()))
	copy(id[:6], ms[2:])
	id[6] = 0x70 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	return id
}
