// Package events says what happened: the sealed event types of every lifecycle, the envelope they are recorded in, their stored
// form and their text form.
//
// An [Event] is a past-tense fact about one [Entity]: a message was claimed, a worker was lost. A [Transition] adds what the rules
// made of it (version, state before, state after), and a [Recorded] adds where and when it stands in the log. What all events of a
// commit share (who asked, for what, at which time) stands once on their [Commit].
//
// # Stored form
//
// An event's body is canonical JSON: its fields in the fixed order of its type, zero values left out, times as integers of
// microseconds since 1970, ids as text. The bytes are written once and never rewritten, and a CRC-32C over them and over the columns
// beside them is checked whenever they are read, so a flipped bit or an edited row is an error that names its place ([*Corrupt]).
// Every type carries a schema version; a released (type, version) never changes its form, and testdata holds one sample of each.
//
// One method per type, its visit, lists the fields: writing, reading and printing all walk that same list, so they cannot disagree.
//
// # Adding a type
//
// Add a struct with its Type and visit methods, a line in the table of types, a pair of samples in package internal/corpus and a case
// in the Evolve of its machine in package fsm. Codes are never used twice. The corpus test says what is missing.
package events
