package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// readAll renders everything a Reader gives, errors included, until it ends.
func readAll(t *testing.T, in io.Reader, o ReaderOptions) []string {
	t.Helper()
	r, err := NewReader(in, o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 1000 {
		record, err := r.Next()
		var tooLong *TooLongError
		switch {
		case err == io.EOF:
			if _, again := r.Next(); again != io.EOF {
				t.Errorf("after io.EOF: %v, want io.EOF again", again)
			}
			return got
		case errors.As(err, &tooLong):
			got = append(got, err.Error())
		case err != nil:
			if _, again := r.Next(); again != err {
				t.Errorf("after %v: %v, want the same", err, again)
			}
			return append(got, err.Error())
		default:
			got = append(got, fmt.Sprintf("%d %q", record.Line, record.Bytes))
		}
	}
	t.Fatal("no end after 1000 records")
	return nil
}

func TestReader(t *testing.T) {
	tests := []struct {
		name string
		in   string
		o    ReaderOptions
		want []string
	}{
		{name: "nothing", in: ""},
		{name: "one ended", in: "a\n", want: []string{`1 "a"`}},
		{name: "last without ending", in: "a\nb", want: []string{`1 "a"`, `2 "b"`}},
		{name: "empty ones skipped and counted", in: "\n\na\n\nb\n\n", want: []string{`3 "a"`, `5 "b"`}},
		{name: "bytes kept", in: "a\r\n\xff\xfe \x00\t\n", want: []string{`1 "a\r"`, `2 "\xff\xfe \x00\t"`}},
		{name: "spaces are a record", in: " \n", want: []string{`1 " "`}},
		{name: "NUL-ended", in: "a\nb\x00\x00c", o: ReaderOptions{Ending: NUL}, want: []string{`1 "a\nb"`, `3 "c"`}},
		{name: "at the bound", in: "abc\nabc", o: ReaderOptions{MaxBytes: 3}, want: []string{`1 "abc"`, `2 "abc"`}},
		{
			name: "past the bound, then on", in: "a\nabcd\nb\n", o: ReaderOptions{MaxBytes: 3},
			want: []string{`1 "a"`, "line 2: 4 bytes so far, more than the 3 a record may have", `3 "b"`},
		},
		{
			name: "past the bound at the end", in: "abcd", o: ReaderOptions{MaxBytes: 3},
			want: []string{"line 1: 4 bytes so far, more than the 3 a record may have"},
		},
		{
			name: "far past the bound", in: strings.Repeat("x", 3*bufferBytes) + "\n\nb", o: ReaderOptions{MaxBytes: 10},
			want: []string{"line 1: 65536 bytes so far, more than the 10 a record may have", `3 "b"`},
		},
		{
			name: "far past the bound at the end", in: strings.Repeat("x", 3*bufferBytes), o: ReaderOptions{MaxBytes: 10},
			want: []string{"line 1: 65536 bytes so far, more than the 10 a record may have"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, readAll(t, strings.NewReader(tt.in), tt.o)); diff != "" {
				t.Errorf("whole reads (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReaderDropsACutRecord(t *testing.T) {
	broken := errors.New("cable pulled")
	in := io.MultiReader(strings.NewReader("a\nbc"), iotest.ErrReader(broken))
	want := []string{`1 "a"`, "read line 2: cable pulled"}
	if diff := cmp.Diff(want, readAll(t, in, ReaderOptions{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in = io.MultiReader(strings.NewReader(strings.Repeat("x", bufferBytes)), iotest.ErrReader(broken))
	want = []string{"line 1: 65536 bytes so far, more than the 5 a record may have", "read line 1: cable pulled"}
	if diff := cmp.Diff(want, readAll(t, in, ReaderOptions{MaxBytes: 5})); diff != "" {
		t.Errorf("while skipping (-want +got):\n%s", diff)
	}
}

func TestReaderGivesARecordBeforeTheNextIsWritten(t *testing.T) {
	in, out := io.Pipe()
	defer in.Close()
	r, err := NewReader(in, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Ready() {
		t.Error("ready before anything was written")
	}
	go out.Write([]byte("a\nb\n\nc"))
	for _, want := range []struct {
		text  string
		ready bool
	}{{"a", true}, {"b", false}} {
		record, err := r.Next()
		if err != nil || string(record.Bytes) != want.text {
			t.Fatalf("got %q, %v, want %q", record.Bytes, err, want.text)
		}
		if r.Ready() != want.ready {
			t.Errorf("after %q: ready %v, want %v", want.text, r.Ready(), want.ready)
		}
	}
}

func TestReaderIsNotReadyWithinASkippedRecord(t *testing.T) {
	in := iotest.OneByteReader(strings.NewReader("abcd\n\nx\ny"))
	r, err := NewReader(in, ReaderOptions{MaxBytes: 2})
	if err != nil {
		t.Fatal(err)
	}
	var tooLong *TooLongError
	if _, err := r.Next(); !errors.As(err, &tooLong) {
		t.Fatalf("got %v, want a *TooLongError", err)
	}
	r.within = true // as if the ending had not come with it
	if r.nonEmpty([]byte("zz\n")) || r.nonEmpty([]byte("zz\n\n")) || !r.nonEmpty([]byte("zz\n\nx\n")) {
		t.Error("what ends a skipped record was taken for a record")
	}
}

func TestReaderOptionsOutOfBounds(t *testing.T) {
	for want, o := range map[string]ReaderOptions{
		"read lines: ending 7: want Newline (0) or NUL (1)":                     {Ending: 7},
		"read lines: max bytes -1: want 0 (the default, 1048576) or more":       {MaxBytes: -1},
		"read lines: max bytes -9: want 0 (the default, 1048576) or more":       {MaxBytes: -9, Ending: NUL},
		"read lines: ending -1: want Newline (0) or NUL (1)":                    {Ending: -1, MaxBytes: -1},
		"read lines: max bytes -1048576: want 0 (the default, 1048576) or more": {MaxBytes: -DefaultMaxBytes},
	} {
		if _, err := NewReader(strings.NewReader(""), o); err == nil || err.Error() != want {
			t.Errorf("%+v: got %v, want %s", o, err, want)
		}
	}
}

// Whatever the sizes of the reads, a Reader gives what splitting the whole
// input gives, and one error for each record past the bound.
func TestReaderSplitsAsSplitDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := rapid.SliceOf(rapid.SampledFrom([]byte("ab\n\x00\r\xff"))).Draw(rt, "in")
		scale := rapid.SampledFrom([]int{1, bufferBytes / 2}).Draw(rt, "scale")
		in = bytes.ReplaceAll(in, []byte("a"), bytes.Repeat([]byte("a"), scale))
		limit := rapid.IntRange(1, 3).Draw(rt, "bound") * scale

		var want []string
		for i, part := range bytes.Split(in, []byte("\n")) {
			switch {
			case len(part) > limit:
				want = append(want, fmt.Sprintf("%d too long", i+1))
			case len(part) > 0:
				want = append(want, fmt.Sprintf("%d %x", i+1, part))
			}
		}
		r, err := NewReader(iotest.HalfReader(bytes.NewReader(in)), ReaderOptions{MaxBytes: limit})
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		for {
			record, err := r.Next()
			if err == io.EOF {
				break
			}
			var tooLong *TooLongError
			if errors.As(err, &tooLong) {
				got = append(got, fmt.Sprintf("%d too long", tooLong.Line))
				continue
			}
			if err != nil {
				rt.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%d %x", record.Line, record.Bytes))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
