package faulty_test

import (
	"testing"

	"github.com/foundling-go/foundling/store/faulty"
	"github.com/google/go-cmp/cmp"
)

// faults is what a plan has for the first calls, all of one operation but each third, which is a Read.
func faults(plan faulty.Plan, n int) []faulty.Fault {
	var list []faulty.Fault
	of := map[faulty.Op]int{}
	for i := range n {
		c := faulty.Call{N: i + 1, Op: faulty.Decide}
		if c.N%3 == 0 {
			c.Op = faulty.Read
		}
		of[c.Op]++
		c.Of = of[c.Op]
		list = append(list, plan(c))
	}
	return list
}

func TestPlans(t *testing.T) {
	const o, x, y = faulty.None, faulty.Fail, faulty.Twice
	waited := 0
	for _, test := range []struct {
		name string
		plan faulty.Plan
		want []faulty.Fault
	}{
		{"never", faulty.Never, []faulty.Fault{o, o, o, o, o, o}},
		{"at", faulty.At(4, x), []faulty.Fault{o, o, o, x, o, o}},
		{"first", faulty.First(2, x), []faulty.Fault{x, x, o, o, o, o}},
		{"every", faulty.Every(2, x), []faulty.Fault{o, x, o, x, o, x}},
		{"only", faulty.Only(faulty.Read, faulty.At(2, x)), []faulty.Fault{o, o, o, o, o, x}},
		{"only, numbered by themselves", faulty.Only(faulty.Decide, faulty.Every(3, x)), []faulty.Fault{o, o, o, x, o, o}},
		{"any", faulty.Any(faulty.At(2, y), faulty.Every(2, x)), []faulty.Fault{o, y, o, x, o, x}},
		{"any of none", faulty.Any(), []faulty.Fault{o, o, o, o, o, o}},
		{"delayed", faulty.Delayed(func(faulty.Call) { waited++ }, faulty.At(1, x)), []faulty.Fault{x, o, o, o, o, o}},
	} {
		if diff := cmp.Diff(test.want, faults(test.plan, len(test.want))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.name, diff)
		}
	}
	if waited != 6 {
		t.Errorf("a delayed plan waited %d times for 6 calls", waited)
	}
}

func TestRandomIsAPlanOfItsSeed(t *testing.T) {
	const n = 4000
	rates := faulty.Rates{faulty.LostAfter: .25, faulty.Twice: .5}
	first := faults(faulty.Random(1, rates), n)
	if diff := cmp.Diff(first, faults(faulty.Random(1, rates), n)); diff != "" {
		t.Fatalf("the same seed has two plans:\n%s", diff)
	}
	if cmp.Equal(first, faults(faulty.Random(2, rates), n)) {
		t.Error("two seeds have the same plan")
	}
	seen := map[faulty.Fault]int{}
	for _, fault := range first {
		seen[fault]++
	}
	for fault, rate := range map[faulty.Fault]float64{faulty.None: .25, faulty.LostAfter: .25, faulty.Twice: .5} {
		if got := float64(seen[fault]) / n; got < rate-.05 || got > rate+.05 {
			t.Errorf("%s happened at a rate of %.2f, want %.2f", fault, got, rate)
		}
	}
	if len(seen) != 3 {
		t.Errorf("faults without a rate happened: %v", seen)
	}
}

func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for op := faulty.Decide; op <= faulty.Hint; op++ {
		seen[op.String()] = true
	}
	for fault := faulty.None; fault <= faulty.StopAfter; fault++ {
		seen[fault.String()] = true
	}
	if want := int(faulty.Hint) + int(faulty.StopAfter) + 1; len(seen) != want || seen[""] {
		t.Errorf("%d words for %d operations and faults: %v", len(seen), want, seen)
	}
	for _, text := range []string{faulty.Op(0).String(), (faulty.Hint + 1).String(), (faulty.StopAfter + 1).String()} {
		if seen[text] || text == "" {
			t.Errorf("what is no operation or fault is called %q", text)
		}
	}
}
