package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foundling-go/foundling/store"
)

// checkpoints are the sentences about an engine that is a store.Shelf.
func checkpoints() []sentence {
	return []sentence{
		{"a checkpoint comes back as it was saved", checkpointComesBack},
		{"a checkpoint carries the store's time of saving", checkpointTime},
		{"a checkpoint that does not follow the newest is ErrMoved, and not kept", checkpointFollows},
		{"of many who save the next checkpoint at once one does", checkpointRace},
		{"Checkpoints lists by name, version, then sequence, without views", checkpointsInOrder},
		{"Checkpoints filters by name and version, and gives the newest alone", checkpointsFiltered},
		{"the view of what is not kept is ErrMoved", checkpointGone},
		{"what is dropped is gone, and nothing else", checkpointDropped},
		{"a checkpoint without a name, a version or a sequence is refused", badCheckpoint},
		{"a checkpoint is no event", checkpointNoEvent},
		{"what Shelf gives is the caller's, and what it is given too", ownCheckpoint},
		{"a context that has ended saves and drops nothing", checkpointWithdrawn},
		{"after Close every use of a Shelf is ErrClosed", checkpointClosed},
	}
}

func largestCheckpoint() []sentence {
	return []sentence{{"the largest view is kept, one byte more is too large", largestView}}
}

// sharedCheckpoints are the sentences about several processes that have checkpoints.
func sharedCheckpoints() []sentence {
	return []sentence{
		{"processes never save one checkpoint twice", func(b *bed) { b.saveTogether([]*bed{b, b.again(), b.again()}) }},
		{"checkpoints are there after the store was closed", func(b *bed) {
			b.lives(1)
			saved := b.save("totals", 1, 1, "view")
			b.save("totals", 1, 2, "later")
			b.ok(b.s.Close())
			c := b.again()
			want(c, "checkpoint", exactCheckpoint(c.viewed(saved.CheckpointKey)), exactCheckpoint(saved))
			want(c, "checkpoints", len(c.shelved(store.CheckpointFilter{})), 2)
			c.save("totals", 1, 3, "newest")
		}},
	}
}

func (b *bed) shelf() store.Shelf {
	shelf, _ := store.As[store.Shelf](b.s)
	return shelf
}

func keyOf(name string, version, sequence int) store.CheckpointKey {
	return store.CheckpointKey{Name: name, Version: version, Sequence: sequence}
}

// save keeps a checkpoint at the head of the log.
func (b *bed) save(name string, version, sequence int, view string) store.Checkpoint {
	b.t.Helper()
	c, err := b.shelf().Save(b.ctx, store.Checkpoint{CheckpointKey: keyOf(name, version, sequence), Cursor: b.head(), View: []byte(view)})
	b.ok(err)
	return c
}

func (b *bed) viewed(k store.CheckpointKey) store.Checkpoint {
	b.t.Helper()
	c, err := b.shelf().View(b.ctx, k)
	b.ok(err)
	return c
}

func (b *bed) shelved(f store.CheckpointFilter) []store.Checkpoint {
	b.t.Helper()
	list, err := b.shelf().Checkpoints(b.ctx, f)
	b.ok(err)
	return list
}

func exactCheckpoint(c store.Checkpoint) string {
	return fmt.Sprintf("%q version %d sequence %d behind %q at %s: %x", c.Name, c.Version, c.Sequence, string(c.Cursor), c.At.Format(time.RFC3339Nano), c.View)
}

func exactCheckpoints(list []store.Checkpoint) string {
	var all []string
	for _, c := range list {
		all = append(all, exactCheckpoint(c))
	}
	return strings.Join(all, "\n")
}

func checkpointComesBack(b *bed) {
	b.lives(1)
	for i, c := range []store.Checkpoint{
		{CheckpointKey: keyOf("totals", 1, 1), Cursor: b.head(), View: []byte(`{"n":1}`)},
		{CheckpointKey: keyOf("totals", 1, 2), Cursor: "", View: []byte{0, 255, '\n', '\'', 0}},
		{CheckpointKey: keyOf("né \n\"'; -- %_", 1<<40, 1), Cursor: "any 'text' é", View: nil},
		{CheckpointKey: keyOf(strings.Repeat("é", store.MaxName/2), 2, 1), Cursor: b.head(), View: []byte{}},
	} {
		saved, err := b.shelf().Save(b.ctx, c)
		b.ok(err)
		c.At = saved.At
		want(b, fmt.Sprintf("saved %d", i), exactCheckpoint(saved), exactCheckpoint(c))
		want(b, fmt.Sprintf("viewed %d", i), exactCheckpoint(b.viewed(c.CheckpointKey)), exactCheckpoint(c))
	}
}

func checkpointTime(b *bed) {
	before, err := b.s.Now(b.ctx)
	b.ok(err)
	c, err := b.shelf().Save(b.ctx, store.Checkpoint{CheckpointKey: keyOf("totals", 1, 1), At: someTime})
	b.ok(err)
	after, err := b.s.Now(b.ctx)
	b.ok(err)
	if c.At.Before(before) || c.At.After(after) {
		b.t.Fatalf("saved at %s, it was between %s and %s", c.At, before, after)
	}
	for _, at := range []time.Time{c.At, b.viewed(c.CheckpointKey).At, b.shelved(store.CheckpointFilter{})[0].At} {
		want(b, "time", at.Equal(c.At), true)
		want(b, "time in microseconds", at, at.Truncate(time.Microsecond))
		want(b, "location", at.Location(), time.UTC)
	}
}

func checkpointFollows(b *bed) {
	moved := func(name string, version int, sequences ...int) {
		b.t.Helper()
		kept := exactCheckpoints(b.shelved(store.CheckpointFilter{}))
		for _, n := range sequences {
			_, err := b.shelf().Save(b.ctx, store.Checkpoint{CheckpointKey: keyOf(name, version, n), View: []byte("other")})
			b.is(err, store.ErrMoved)
		}
		want(b, "checkpoints", exactCheckpoints(b.shelved(store.CheckpointFilter{})), kept)
	}
	moved("a", 1, 2, 3)
	first := b.save("a", 1, 1, "one")
	moved("a", 1, 1, 3)
	b.save("a", 1, 2, "two")
	moved("a", 1, 1, 2, 4)
	want(b, "the first", exactCheckpoint(b.viewed(first.CheckpointKey)), exactCheckpoint(first))
	moved("a", 2, 2, 3)
	moved("A", 1, 3)
	b.save("a", 2, 1, "of another version")
	b.save("A", 1, 1, "of another name")
	b.save("a", 1, 3, "three")
}

func checkpointRace(b *bed) { b.saveTogether([]*bed{b, b, b, b, b, b}) }

// saveTogether has several callers that have seen the same checkpoint save the next one at once, over and over.
func (b *bed) saveTogether(callers []*bed) {
	b.t.Helper()
	for sequence := range 12 {
		saved := make([]bool, len(callers))
		view := func(i int) []byte { return fmt.Appendf(nil, "%d by caller %d", sequence+1, i) }
		b.ok(together(len(callers), func(i int) error {
			_, err := callers[i].shelf().Save(b.ctx, store.Checkpoint{CheckpointKey: keyOf("totals", 1, sequence+1), View: view(i)})
			if saved[i] = err == nil; errors.Is(err, store.ErrMoved) {
				return nil
			}
			return err
		}))
		winner := slices.Index(saved, true)
		if winner < 0 || slices.Contains(saved[winner+1:], true) {
			b.t.Fatalf("who saved checkpoint %d: %v, want one", sequence+1, saved)
		}
		for _, c := range callers {
			want(b, "view", string(c.viewed(keyOf("totals", 1, sequence+1)).View), string(view(winner)))
			want(b, "checkpoints", len(c.shelved(store.CheckpointFilter{})), sequence+1)
		}
	}
}

func checkpointsInOrder(b *bed) {
	want(b, "checkpoints", len(b.shelved(store.CheckpointFilter{})), 0)
	var saved []store.Checkpoint
	for sequence := range 11 {
		for _, name := range []string{"b", "a", "é", "B", "ab"} {
			for _, version := range []int{10, 9, 1} {
				c := b.save(name, version, sequence+1, name)
				c.View = nil
				saved = append(saved, c)
			}
		}
	}
	slices.SortFunc(saved, func(x, y store.Checkpoint) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), cmp.Compare(x.Version, y.Version), cmp.Compare(x.Sequence, y.Sequence))
	})
	want(b, "checkpoints", exactCheckpoints(b.shelved(store.CheckpointFilter{})), exactCheckpoints(saved))
}

func checkpointsFiltered(b *bed) {
	for _, name := range []string{"a", "A", "a%", "b"} {
		for version := range 3 {
			for sequence := range version + 2 {
				b.save(name, version+1, sequence+1, "view")
			}
		}
	}
	all := b.shelved(store.CheckpointFilter{})
	for _, f := range []store.CheckpointFilter{
		{Name: "a"}, {Name: "a%"}, {Name: "none"}, {Version: 2}, {Version: 9}, {Name: "a", Version: 3}, {Newest: true}, {Name: "b", Newest: true},
		{Version: 1, Newest: true}, {Name: "A", Version: 2, Newest: true}, {Name: "none", Newest: true},
	} {
		var wanted []store.Checkpoint
		for i, c := range all {
			if f.Name != "" && c.Name != f.Name || f.Version != 0 && c.Version != f.Version {
				continue
			}
			last := i+1 == len(all) || all[i+1].Name != c.Name || all[i+1].Version != c.Version
			if last || !f.Newest {
				wanted = append(wanted, c)
			}
		}
		want(b, fmt.Sprintf("%+v", f), exactCheckpoints(b.shelved(f)), exactCheckpoints(wanted))
	}
}

func checkpointGone(b *bed) {
	b.save("a", 1, 1, "view")
	for _, k := range []store.CheckpointKey{keyOf("a", 1, 2), keyOf("a", 2, 1), keyOf("b", 1, 1), keyOf("A", 1, 1), keyOf("a", 1, 0), {}} {
		_, err := b.shelf().View(b.ctx, k)
		b.is(err, store.ErrMoved)
	}
}

func checkpointDropped(b *bed) {
	for i := range 5 {
		b.save("a", 1, i+1, "view")
		b.save("a", 2, i+1, "view")
	}
	b.ok(b.shelf().Drop(b.ctx))
	b.ok(b.shelf().Drop(b.ctx, keyOf("a", 1, 1), keyOf("a", 1, 3), keyOf("a", 3, 1), keyOf("b", 1, 1), keyOf("a", 1, 1)))
	b.ok(b.shelf().Drop(b.ctx, keyOf("a", 1, 1)))
	left := func(version int, wanted ...int) {
		b.t.Helper()
		var got []int
		for _, c := range b.shelved(store.CheckpointFilter{Name: "a", Version: version}) {
			got = append(got, c.Sequence)
		}
		want(b, "sequences that are left", fmt.Sprint(got), fmt.Sprint(wanted))
	}
	left(1, 2, 4, 5)
	left(2, 1, 2, 3, 4, 5)
	_, err := b.shelf().View(b.ctx, keyOf("a", 1, 3))
	b.is(err, store.ErrMoved)
	b.save("a", 1, 6, "behind the newest")
	b.ok(b.shelf().Drop(b.ctx, keyOf("a", 1, 6), keyOf("a", 1, 5)))
	b.save("a", 1, 5, "behind the newest that is kept")
	left(1, 2, 4, 5)
	b.ok(b.shelf().Drop(b.ctx, keyOf("a", 1, 2), keyOf("a", 1, 4), keyOf("a", 1, 5)))
	left(1)
	b.save("a", 1, 1, "the first again")
}

func largestView(b *bed) {
	view := make([]byte, store.MaxView+1)
	view[0], view[store.MaxView/2], view[store.MaxView-1] = 'a', 0xff, 'z'
	c := store.Checkpoint{CheckpointKey: keyOf("a", 1, 1), View: view}
	_, err := b.shelf().Save(b.ctx, c)
	b.is(err, store.ErrTooLarge)
	if text := err.Error(); !strings.Contains(text, fmt.Sprint(store.MaxView)) || !strings.Contains(text, fmt.Sprint(store.MaxView+1)) {
		b.t.Fatalf("error %q does not name the bound %d and what came", text, store.MaxView)
	}
	want(b, "checkpoints", len(b.shelved(store.CheckpointFilter{})), 0)
	c.View = view[:store.MaxView]
	_, err = b.shelf().Save(b.ctx, c)
	b.ok(err)
	want(b, "the same bytes", bytes.Equal(b.viewed(c.CheckpointKey).View, c.View), true)
}

func badCheckpoint(b *bed) {
	for _, k := range []store.CheckpointKey{
		keyOf("", 1, 1), keyOf("\xff", 1, 1), keyOf("a", 0, 1), keyOf("a", -1, 1), keyOf("a", 1, 0), keyOf("a", 1, -1),
		keyOf(strings.Repeat("x", store.MaxName+1), 1, 1),
	} {
		if _, err := b.shelf().Save(b.ctx, store.Checkpoint{CheckpointKey: k}); err == nil || errors.Is(err, store.ErrMoved) {
			b.t.Fatalf("checkpoint %+v: error %v, want one of its key", k, err)
		}
	}
	want(b, "checkpoints", len(b.shelved(store.CheckpointFilter{})), 0)
}

func checkpointNoEvent(b *bed) {
	b.lives(1)
	log, kept := b.log(store.Filter{}), b.kept(store.RowFilter{})
	b.save("a", 1, 1, "view")
	b.ok(b.shelf().Drop(b.ctx, keyOf("a", 1, 1)))
	b.same("log", b.log(store.Filter{}), log)
	b.sameRows("rows", b.kept(store.RowFilter{}), kept)
	want(b, "head", b.head(), b.s.After(log[len(log)-1]))
}

func ownCheckpoint(b *bed) {
	view := []byte("view")
	saved, err := b.shelf().Save(b.ctx, store.Checkpoint{CheckpointKey: keyOf("a", 1, 1), View: view})
	b.ok(err)
	clear(view)
	clear(saved.View)
	got := b.viewed(keyOf("a", 1, 1))
	want(b, "after what was saved was overwritten", string(got.View), "view")
	clear(got.View)
	want(b, "after what was given was overwritten", string(b.viewed(keyOf("a", 1, 1)).View), "view")
}

// shelfErrors is one use of each of the shelf's methods, by name.
func (b *bed) shelfErrors(ctx context.Context, k store.CheckpointKey) map[string]error {
	next := k
	next.Sequence++
	_, save := b.shelf().Save(ctx, store.Checkpoint{CheckpointKey: next})
	_, list := b.shelf().Checkpoints(ctx, store.CheckpointFilter{})
	_, view := b.shelf().View(ctx, k)
	return map[string]error{"Save": save, "Checkpoints": list, "View": view, "Drop": b.shelf().Drop(ctx, k)}
}

func checkpointWithdrawn(b *bed) {
	k := b.save("a", 1, 1, "view").CheckpointKey
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	for method, err := range b.shelfErrors(ctx, k) {
		if !errors.Is(err, context.Canceled) {
			b.t.Errorf("%s: error %v, want %v", method, err, context.Canceled)
		}
	}
	want(b, "checkpoints", len(b.shelved(store.CheckpointFilter{})), 1)
}

func checkpointClosed(b *bed) {
	k := b.save("a", 1, 1, "view").CheckpointKey
	b.ok(b.s.Close())
	for method, err := range b.shelfErrors(b.ctx, k) {
		if !errors.Is(err, store.ErrClosed) {
			b.t.Errorf("%s: error %v, want %v", method, err, store.ErrClosed)
		}
	}
}
