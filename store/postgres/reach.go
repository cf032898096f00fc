package postgres

import (
	"encoding/binary"
	"hash/crc32"
	"time"
)

// pruned is how much of the beginning of the log was let go.
type pruned struct {
	through int64     // the position of the last event that went
	at      time.Time // when the newest commit that went was decided
}

func (p pruned) checksum() uint32 {
	b := binary.BigEndian.AppendUint64(nil, uint64(p.through))
	return crc32.Checksum(binary.BigEndian.AppendUint64(b, uint64(p.at.UnixMicro())), castagnoli)
}
