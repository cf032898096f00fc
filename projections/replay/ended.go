package replay

import (
	"hash/maphash"

	"github.com/foundling-go/foundling/events"
)

// ended remembers in fixed memory which entities have ended, so that one that begins a second time is noticed: a Bloom filter. It never
// forgets one and sometimes takes a new one for an old one, more often the more there are; the log itself then settles it.
type ended struct {
	seed maphash.Seed
	bits []uint64
}

const (
	endedBits   = 1 << 25 // 4 MiB: one in forty is looked up needlessly after four million
	endedProbes = 4
)

func newEnded() ended { return ended{maphash.MakeSeed(), make([]uint64, endedBits/64)} }

func (e ended) add(entity events.Entity) {
	for _, bit := range e.probes(entity) {
		e.bits[bit/64] |= 1 << (bit % 64)
	}
}

func (e ended) maybe(entity events.Entity) bool {
	for _, bit := range e.probes(entity) {
		if e.bits[bit/64]&(1<<(bit%64)) == 0 {
			return false
		}
	}
	return true
}

// probes is the bits of an entity: its hash, then steps of its upper half.
func (e ended) probes(entity events.Entity) (list [endedProbes]uint64) {
	hash := maphash.Comparable(e.seed, entity)
	step := hash>>32 | 1
	for i := range list {
		list[i] = (hash + uint64(i)*step) % endedBits
	}
	return list
}
