package lines

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newTally(t testing.TB) *Tally {
	t.Helper()
	tally, err := NewTally()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tally.Close(); err != nil {
			t.Error(err)
		}
	})
	return tally
}

func TestTally(t *testing.T) {
	tally := newTally(t)
	a, b := SumOf([]byte("a")), SumOf([]byte("b"))
	for _, step := range []struct {
		add  []Sum
		want []int
	}{
		{nil, []int{}},
		{[]Sum{a, b, a, a}, []int{0, 0, 1, 2}},
		{[]Sum{b}, []int{1}},
		{[]Sum{a, a, b}, []int{3, 4, 2}},
	} {
		got, err := tally.Add(step.add)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A tally agrees with a map, within a chunk, over chunks and over calls.
func TestTallyCountsAsAMapDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tally, err := NewTally()
		if err != nil {
			rt.Fatal(err)
		}
		defer tally.Close()
		seen := make(map[Sum]int)
		for range rapid.IntRange(1, 2).Draw(rt, "calls") {
			kinds := rapid.SampledFrom([]int{2, 300, 3000}).Draw(rt, "kinds")
			var sums []Sum
			var want []int
			next := rapid.Uint64().Draw(rt, "seed")
			for range rapid.SampledFrom([]int{1, 499, 500, 501, 1100}).Draw(rt, "records") {
				next = next*6364136223846793005 + 1442695040888963407
				sum := numbered(int(next>>33) % kinds)
				sums, want = append(sums, sum), append(want, seen[sum])
				seen[sum]++
			}
			got, err := tally.Add(sums)
			if err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("(-want +got):\n%s", diff)
			}
		}
	})
}

func TestTallyStaysBroken(t *testing.T) {
	tally, err := NewTally()
	if err != nil {
		t.Fatal(err)
	}
	tally.Close()
	_, first := tally.Add([]Sum{{1}})
	_, second := tally.Add([]Sum{{1}})
	if first == nil || second != first {
		t.Errorf("got %v, then %v, want the same error twice", first, second)
	}
}

// The counts lie in a file, and that file has no name: nothing is left behind,
// however the process ends.
func TestTallyFileHasNoName(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc/self/fd")
	}
	tally := newTally(t)
	if _, err := tally.db.Exec("PRAGMA cache_size = -64"); err != nil { // KiB, to pass it soon
		t.Fatal(err)
	}
	before := openFiles(t)
	for i := 0; i < 8_000; i += chunkRows {
		if _, err := tally.Add(numberedBatch(i)); err != nil {
			t.Fatal(err)
		}
	}
	opened := 0
	for name := range openFiles(t) {
		if before[name] || !strings.HasPrefix(name, "/") {
			continue
		}
		opened++
		if !strings.HasSuffix(name, " (deleted)") {
			t.Errorf("%s would be left behind", name)
		}
	}
	if opened != 1 {
		t.Errorf("%d files opened, want 1", opened)
	}
}

// openFiles returns what the file descriptors of this process stand for.
func openFiles(t *testing.T) map[string]bool {
	t.Helper()
	const fds = "/proc/self/fd"
	entries, err := os.ReadDir(fds)
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, e := range entries {
		name, _ := os.Readlink(filepath.Join(fds, e.Name())) // that of ReadDir itself is gone
		names[name] = true
	}
	return names
}

// BenchmarkTally counts new lines; -benchtime=10000000x shows that neither
// speed nor memory depends on their number.
func BenchmarkTally(b *testing.B) {
	tally := newTally(b)
	before := residentKiB(b)
	b.ResetTimer()
	for i := 0; i < b.N; i += chunkRows {
		if _, err := tally.Add(numberedBatch(i)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
	b.ReportMetric(float64(residentKiB(b)-before)/1024, "MiB-grown")
}

func BenchmarkReadAndName(b *testing.B) {
	var in bytes.Buffer
	for i := range b.N {
		fmt.Fprintf(&in, "a line of common length, number %d\n", i)
	}
	r, err := NewReader(&in, ReaderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		record, err := r.Next()
		if err != nil {
			b.Fatal(err)
		}
		SumOf(record.Bytes)
		Name(created, record.Bytes, 0)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}

func numbered(i int) Sum {
	return SumOf(binary.BigEndian.AppendUint64(nil, uint64(i)))
}

func numberedBatch(from int) []Sum {
	sums := make([]Sum, chunkRows)
	for i := range sums {
		sums[i] = numbered(from + i)
	}
	return sums
}

// residentKiB is the process's anonymous memory in RAM, or 0 where there is no
// /proc to tell.
func residentKiB(b *testing.B) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("RssAnon:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, err := strconv.Atoi(string(fields[0]))
	if err != nil {
		b.Fatal(err)
	}
	return kib
}
