package faulty

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// Op is a store's operation.
type Op uint8

// The operations. A hint of a [store.Waiter] counts apart from all others: how many of them arrive is a matter of timing.
const (
	Decide Op = iota + 1
	Outcome
	Read
	Head
	Rows
	Permits
	Contents
	Now
	Beat
	Beats
	Still
	Lease
	Attest
	Gone
	FirstKept // Pruner.First: First is a plan
	Save
	Checkpoints
	View
	Drop
	Hint
)

var opWords = [...]string{
	Decide: "decide", Outcome: "outcome", Read: "read", Head: "head", Rows: "rows", Permits: "permits", Contents: "contents", Now: "now",
	Beat: "beat", Beats: "beats", Still: "still", Lease: "lease", Attest: "attest", Gone: "gone",
	FirstKept: "first", Save: "save", Checkpoints: "checkpoints", View: "view", Drop: "drop", Hint: "hint",
}

// String is the operation's word.
func (op Op) String() string {
	if int(op) < len(opWords) && op > 0 {
		return opWords[op]
	}
	return fmt.Sprintf("op(%d)", uint8(op))
}

// Call is one call of the store.
type Call struct {
	N  int // its number among all calls, or among all hints; the first is 1
	Op Op
	Of int // its number among those of its operation
}

// Fault is what befalls a call. One that a call cannot have leaves it alone.
type Fault uint8

// The faults.
const (
	None       Fault = iota
	Fail             // any call: an error, and nothing happened
	LostBefore       // Decide: nothing was committed, and the caller cannot tell (store.ErrUnknown); Outcome, Beat, Still, Lease, Save, Drop: as Fail
	LostAfter        // Decide: it was committed, and the caller cannot tell; Outcome, Beat, Still, Lease, Save, Drop: it was done, and the answer is an error
	Late             // Decide: as LostBefore, but each call reaches the store after all, once it was settled by Outcome
	Twice            // Decide: every Fn runs twice, first over the view of an empty store; Lease: so does turn, first over a lease that nobody ever had; that result is thrown away
	BreakOff         // Read, Rows, Permits: an error in mid-page, behind the first item
	LoseHint         // Hint: nobody hears of it
	StopBefore       // any call: it fails, and so does every later one, as if the process had lost its store
	StopAfter        // the same, but the call itself has done its work
)

var faultWords = [...]string{
	None: "none", Fail: "fail", LostBefore: "lost before", LostAfter: "lost after", Late: "late", Twice: "twice",
	BreakOff: "break off", LoseHint: "lose hint", StopBefore: "stop before", StopAfter: "stop after",
}

// String is the fault in words.
func (f Fault) String() string {
	if int(f) < len(faultWords) {
		return faultWords[f]
	}
	return fmt.Sprintf("fault(%d)", uint8(f))
}

// Plan says what befalls each call. It is asked once for each, perhaps by many goroutines at a time, and holds up nothing but that
// call while it thinks.
type Plan func(Call) Fault

// Never is the plan without a fault.
func Never(Call) Fault { return None }

// At makes the nth call a fault.
func At(n int, fault Fault) Plan {
	return func(c Call) Fault { return when(c.N == n, fault) }
}

// First makes the first n calls a fault.
func First(n int, fault Fault) Plan {
	return func(c Call) Fault { return when(c.N <= n, fault) }
}

// Every makes each kth call a fault; k is at least 1.
func Every(k int, fault Fault) Plan {
	return func(c Call) Fault { return when(c.N%k == 0, fault) }
}

func when(yes bool, fault Fault) Fault {
	if yes {
		return fault
	}
	return None
}

// Rates says how often each fault happens, from 0 to 1. Together they are at most 1.
type Rates map[Fault]float64

// Random draws faults at their rates. What befalls a call depends on the seed, its operation and its number alone, so a failure that
// was seen once is seen again.
func Random(seed uint64, rates Rates) Plan {
	rates = maps.Clone(rates)
	faults := slices.Sorted(maps.Keys(rates))
	return func(c Call) Fault {
		drawn := rand.New(rand.NewPCG(seed, uint64(c.N)<<8|uint64(c.Op))).Float64()
		for _, fault := range faults {
			if drawn -= rates[fault]; drawn < 0 {
				return fault
			}
		}
		return None
	}
}

// Only is a plan for the calls of one operation, numbered by themselves.
func Only(op Op, plan Plan) Plan {
	return func(c Call) Fault {
		if c.Op != op {
			return None
		}
		c.N = c.Of
		return plan(c)
	}
}

// Any is the first fault that one of the plans has for a call.
func Any(plans ...Plan) Plan {
	return func(c Call) Fault {
		for _, plan := range plans {
			if fault := plan(c); fault != None {
				return fault
			}
		}
		return None
	}
}

// Delayed makes every call wait before the plan is asked. How, and for how long, is wait's business.
func Delayed(wait func(Call), plan Plan) Plan {
	return func(c Call) Fault {
		wait(c)
		return plan(c)
	}
}
