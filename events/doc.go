// Package events says what happened: the sealed event types of every lifecycle, the envelope they are recorded in, their stored
// form and their text form.
//
// An [Event] is a past-tense fact about one [Entity]: a message was claimed, a worker was lost. A [Transition] adds what the rules
// made of it (version, state before, state after), and a [Recorded] adds where and when it stands in the log. What all events of a
// commit share (who asked, for what, at which time) stands once on their [Commit].
//
//	for r, err := range client.Events(ctx, cursor, foundling.EventFilter{}) {
//		switch e := r.Event.(type) {
//		case *events.MessageRequeued:
//			fmt.Println(r.Entity.ID, "goes back to its queue:", e.Reason)
//		case *events.Unknown: // of a newer version
//		}
//	}
//
// # Stored form
//
// An event's body is canonical JSON: its fields in the fixed order of its type, zero values left out, times as integers of
// microseconds since 1970, ids as text. The bytes are written once and never rewritten, and a CRC-32C over them and over the columns
// beside them is checked whenever they are read, so a flipped bit or an edited row is an error that names its place ([*Corrupt]).
// Every type carries a schema version; a released (type, version) never changes its form, and testdata holds one sample of each.
//
// One method per type, VisitFields, lists the fields: writing, reading and printing all walk that same list, so they cannot disagree.
//
// # What moves, and what does not
//
// Most events move their entity and take one of its versions, which follow each other without a gap. A refusal (message.refused) and an erasure
// (message.erased) move nothing and have version 0. A snapshot (see [Type.Snapshots]) takes a version and leaves the state as it is: it tells all
// of it once more, so that a fold can begin there and what is older may go.
//
// # The reader's duties
//
// An event is nobody's to change: it stands in many hands. A type that this version does not know comes as an [*Unknown]; pass it over, or stop
// there, but do not guess. An entity whose beginning was let go by retention comes without one: begin with its first snapshot.
//
// # Adding a type
//
// Add a struct with its Type and VisitFields methods, a line in the table of types, a pair of samples in package internal/corpus and a case
// in the Evolve of its machine in package fsm. Codes are never used twice. The corpus test says what is missing; CONTRIBUTING.md has the whole list.
package events
