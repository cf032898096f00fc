// Package runner keeps durable projections: it follows the log for them and saves what they have come to.
//
//	r, err := runner.New(s, runner.Options{}, func() projections.Durable { return &projections.Totals{} })
//	err = r.Run(ctx) // until ctx ends
//
// # Each event once
//
// A checkpoint is a view together with the cursor behind the last event that it has taken, saved as one: whoever is killed at whatever moment
// begins again where the newest checkpoint stands, and has counted each event once. Many processes may run the same projection: a checkpoint
// is only kept behind the one that its writer has seen, and whoever is beaten to it throws away what it had and goes on from there. A checkpoint
// is saved when so many events have come, or so much time has passed since the last one, and something is new; see [Options].
//
// # Versions
//
// A projection has a name, and its code a version. A new version has checkpoints of its own: it builds beside the old one, which can still be run
// and read, and becomes current once it has come to the end of the log. Readers see the current one alone; see [Current]. Where something about
// a version is doubted, [Rebuild] folds the log again beside what is kept and compares the bytes.
//
// A new version begins at the beginning of the log. Where that was let go by retention, it begins with the oldest checkpoint of an older version that
// its Restore takes and behind which all events are kept, and where there is none, with the oldest event that is kept; its views then say since
// when they count. Retention lets nothing go that the newest version's newest checkpoint has not passed.
//
// # History
//
// Old checkpoints stay, so that one can ask what a projection believed at a time; see [Believed]. The newest 100 are all kept, behind them the
// last one of each hour, for two days, and behind those the last one of each day, for 90 days; see [Keep]. Those of an older version go when the
// last of them is older than that. A view is kept whole with each, so that a projection's view should be small: counts, not lists.
//
// # Faults
//
// A projection whose code panics stops, alone, and the others go on. Where and why is in [Runner.Status], and kept with its newest checkpoint, so
// that every process sees it; see [View]. It is tried again when a process starts. One whose checkpoint lies behind the end of the log, as after
// a backup was restored, or belongs to another store, stops likewise (store.ErrAhead, store.ErrCursor). A store out of reach is tried again at
// the next step.
//
// An event that is not what was written is passed over, with what the store gives no more of its commit: how many they were is in [View.Passed]. A
// checkpoint that is not what was saved is passed over for the one before it, and goes when the next one is saved. Where the log is damaged and
// no event is at fault, the projection stops as after a panic.
package runner
