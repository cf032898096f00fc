package child

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func newHeld(limit int, dir string) *held {
	return &held{max: limit, create: func() (*os.File, error) { return os.CreateTemp(dir, "held-*") }}
}

// What is held comes out whole, twice, and is in a file just when it passes
// the bound; nothing stays in the folder.
func TestHeldKeepsEveryByte(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		h := newHeld(rapid.IntRange(1, 20).Draw(rt, "bound"), dir)
		var want []byte
		for _, part := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 12)).Draw(rt, "writes") {
			if n, err := h.Write(part); n != len(part) || err != nil {
				rt.Fatal(n, err)
			}
			want = append(want, part...)
		}
		if inFile := h.file != nil; inFile != (len(want) > h.max) {
			rt.Errorf("%d of %d bytes, in a file: %v", len(want), h.max, inFile)
		}
		r := Result{stdout: h}
		for range 2 {
			var got bytes.Buffer
			n, err := r.WriteStdout(&got)
			if err != nil || n != int64(len(want)) || !bytes.Equal(got.Bytes(), want) {
				rt.Errorf("got %q, %d, %v, want %q", got.Bytes(), n, err, want)
			}
		}
		for range 2 {
			if err := r.Close(); err != nil {
				rt.Error(err)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			rt.Errorf("left %v, %v", left, err)
		}
	})
}

// Where a file that is open cannot be removed, Close removes it.
func TestHeldRemovesANamedFile(t *testing.T) {
	dir := t.TempDir()
	h := newHeld(1, dir)
	if _, err := h.Write([]byte("more")); err != nil {
		t.Fatal(err)
	}
	h.name = filepath.Join(dir, "still-named")
	if err := os.WriteFile(h.name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestTail(t *testing.T) {
	tests := []struct {
		name           string
		stdout, stderr string
		n              int
		want           string
	}{
		{name: "nothing", n: 10},
		{name: "stderr first", stdout: "out", stderr: "err\n", n: 10, want: "err"},
		{name: "stdout where stderr is blank", stdout: "out\n", stderr: " \n\t", n: 10, want: "out"},
		{name: "the end", stderr: "first\nlast line\n", n: 9, want: "last line"},
		{name: "white space past the cut", stderr: "ab" + strings.Repeat("\n", 20), n: 2, want: "ab"},
		{name: "whole characters", stderr: "éèê", n: 5, want: "èê"},
		{name: "not UTF-8", stderr: "a\xff\xfeb\xff", n: 10, want: "a?b?"},
		{name: "only continuation bytes", stderr: "\x80\x80\x80\x80", n: 2, want: ""},
		{name: "none wanted", stderr: "err", n: 0, want: ""},
	}
	for _, tt := range tests {
		for _, limit := range []int{1 << 10, 1} { // in memory, in a file
			stdout, stderr := newHeld(limit, t.TempDir()), newHeld(limit, t.TempDir())
			_, err1 := stdout.Write([]byte(tt.stdout))
			_, err2 := stderr.Write([]byte(tt.stderr))
			r := Result{stdout: stdout, stderr: stderr}
			if got := r.Tail(tt.n); got != tt.want || err1 != nil || err2 != nil {
				t.Errorf("%s: got %q, want %q (%v, %v)", tt.name, got, tt.want, err1, err2)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestZeroResult(t *testing.T) {
	var r Result
	n, err := r.WriteStdout(nil)
	if n != 0 || err != nil || r.Tail(10) != "" || r.OK() || r.Close() != nil {
		t.Error("the zero Result has something")
	}
}

func TestHeldKeepsItsMemoryWhenThereIsNoFile(t *testing.T) {
	h := newHeld(4, filepath.Join(t.TempDir(), "missing"))
	_, err1 := h.Write([]byte("why"))
	_, err2 := h.Write([]byte("more"))
	if err1 != nil || !errors.Is(err2, os.ErrNotExist) {
		t.Errorf("got %v, %v, want nil and os.ErrNotExist", err1, err2)
	}
	if got := (Result{stderr: h}).Tail(10); got != "why" {
		t.Errorf("tail %q, want what was held", got)
	}
}
