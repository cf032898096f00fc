package postgres

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store"
)

// pruned is how much of the beginning of the log was let go.
type pruned struct {
	through int64     // the position of the last event that went
	at      time.Time // when the newest commit that went was decided, or when it went where that was earlier
}

func (p pruned) checksum() uint32 {
	b := binary.BigEndian.AppendUint64(nil, uint64(p.through))
	return crc32.Checksum(binary.BigEndian.AppendUint64(b, uint64(p.at.UnixMicro())), castagnoli)
}

const (
	prunedColumns = "through, at, checksum"
	prunedQuery   = "SELECT " + prunedColumns + " FROM @pruned"
)

// pruned is the one whose columns, prunedColumns, begin at i.
func (r *record) pruned(i int) pruned {
	p := pruned{through: r.whole(i, 1, math.MaxInt64), at: r.time(i + 1)}
	if sum := r.checksum(i + 2); r.err == nil && sum != p.checksum() {
		r.err = fmt.Errorf("checksum %08x, stored as %08x", p.checksum(), sum)
	}
	return p
}

// hides reports whether an id may be that of an entity whose first event has gone, and stands in the way of another first one no more: it is as old,
// tells no time, or is of one that has not come. Whoever mints ids may have a clock that is ahead of the store's.
func (p pruned) hides(id events.ID, now time.Time) bool {
	if p.through == 0 {
		return false
	}
	minted := store.MintedAt(id)
	return id.Version() != 7 || !minted.After(p.at.Add(skew)) || minted.After(now.Add(skew))
}
