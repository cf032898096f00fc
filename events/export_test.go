package events

// Sum is the checksum that a stored form should have.
func Sum(s Stored) uint32 { return s.sum() }
