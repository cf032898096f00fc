package foundling

// The keys of everything that is logged. Where an event has a field of the same meaning, it has the same name here, so that one search finds both.
const (
	keyAttempt    = "attempt"
	keyLock       = "lock"
	keyToken      = "token"
	keyCommand    = "command"
	keyDetail     = "detail"
	keyError      = "error"
	keyFound      = "found"
	keyFrom       = "from"
	keyLimit      = "limit"
	keyMessage    = "message"
	keyProjection = "projection"
	keyReason     = "reason"
	keySent       = "sent"
	keyState      = "state"
	keySweep      = "sweep"
	keyTerm       = "term"
	keyThrough    = "through"
	keyTo         = "to"
	keyTopic      = "topic"
	keyUntil      = "until"
	keyVersion    = "version"
	keyWorker     = "worker"
	keyDeclared   = "declared" // a limit, by this worker's code
	keyDoing      = "doing"
	keyGrace      = "grace"
	keySince      = "since"

	// Counts.
	keyCheckpoints    = "checkpoints"
	keyClaims         = "claims"
	keyDeadLettered   = "dead_lettered"
	keyEvents         = "events"
	keyHandlersEnded  = "handlers_ended"
	keyHandlersWarned = "handlers_warned"
	keyLocksReleased  = "locks_released"
	keyMessages       = "messages"
	keyPermits        = "permits"
	keyPermitsExpired = "permits_expired"
	keyRequeued       = "requeued"
	keyResults        = "results"
	keySnapshots      = "snapshots"
	keyWorkers        = "workers"
	keyWorkersPurged  = "workers_purged"
)

// attrs is what every record about a claim says, and what else this one does.
func (d delivery) attrs(more ...any) []any {
	m := d.message
	list := []any{keyMessage, m.ID, keyTopic, m.Topic, keyAttempt, m.Attempt, keyToken, m.Token}
	if m.Lock != "" {
		list = append(list, keyLock, m.Lock)
	}
	return append(list, more...)
}
