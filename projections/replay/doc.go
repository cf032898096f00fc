// Package replay asks the log: what an entity's events lead to, and whether the log and the stored state are equal.
//
//	report, err := replay.Verify(ctx, s, replay.Options{Payloads: true})
//	if err == nil && !report.Clean() {
//		for _, v := range report.Violations {
//			fmt.Println(v.Text(nil))
//		}
//	}
//
// [Fold] gives the state that one entity's events lead to, every step of it checked. [Verify] does so for all of them, on a store that may be at work
// meanwhile, and compares the outcome with the rows, the permits and the counts; its comment lists the laws.
//
// It writes nothing and holds nothing in the store: the log is read by pages. A violation is part of the report; an error says that the store could not
// be read to its end. What was not checked is said in the report ([Report].Unchecked), and what no verification can check is [OutOfReach],
// and of a log of which the beginning was let go also [PrunedOutOfReach].
package replay
