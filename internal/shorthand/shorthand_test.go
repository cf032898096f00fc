package shorthand

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	enqueued = `{"topic":"mail","size":20,"commitment":"Op1AWMGcwWIiRGZ1EkRKcYq3ZANti5lS2l2FPG9kSi0"}`
	claimed  = `{"worker":"01a22b56-8a0b-714c-a5fd-0cbf03c0009f","token":163841234,"attempt":1}`
	row      = `{"enqueued":1796021608123456,"size":20,"commitment":"Op1AWMGcwWIiRGZ1EkRKcYq3ZANti5lS2l2FPG9kSi0","attempts":1,"token":163841234}`
)

// texts are what the engines keep, and what looks like it.
func texts() *rapid.Generator[string] {
	part := rapid.OneOf(
		rapid.SampledFrom(words[:]),
		rapid.SampledFrom([]string{enqueued, claimed, row, `"`, `""`, `\"`, `{`, `}`, `,`, "0", "007", "123456", "999999999999999999", "1000000000000000000",
			`"01A22B56-8a0b-714c-a5fd-0cbf03c0009f"`, `"01a22b56-8a0b-714c-a5fd-0cbf03c0009f"`, `"{1a22b56-8a0b-714c-a5fd-0cbf03c0009}"`,
			`"Op1AWMGcwWIiRGZ1EkRKcYq3ZANti5lS2l2FPG9kSi0"`, `"Op1AWMGcwWIiRGZ1EkRKcYq3ZANti5lS2l2FPG9kSi1"`, "ä", "\xff", "\x00", "\x01", "\x1f"}),
		rapid.StringN(0, 5, -1),
		rapid.StringMatching(`"[0-9a-f-]{36}"`),
		rapid.StringMatching(`"[A-Za-z0-9_-]{43}"`),
		rapid.StringMatching(`[0-9]{1,20}`),
	)
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "parts"), "") })
}

func TestWhatIsReadIsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, before := texts().Draw(t, "text"), rapid.StringN(0, 3, -1).Draw(t, "before")
		stored := Append([]byte(before), []byte(text))
		if string(stored[:len(before)]) != before {
			t.Fatalf("what was there before is %q, was %q", stored[:len(before)], before)
		}
		stored = stored[len(before):]
		got, err := Text(stored)
		if err != nil || string(got) != text {
			t.Fatalf("%q is stored as %q and read as %q, error %v", text, stored, got, err)
		}
		if len(stored) > len(text)+1 {
			t.Fatalf("%q takes %d bytes, it has %d", text, len(stored), len(text))
		}
	})
}

func TestAnythingCanBeReadOrIsAnError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := rapid.SliceOf(rapid.OneOf(rapid.ByteRange(0, 0x21), rapid.Byte())).Draw(t, "stored")
		kept := bytes.Clone(stored)
		text, err := Text(stored)
		if err == nil && len(stored) > 0 && len(text) > 0 {
			text[0]++ // it is the caller's
		}
		if !bytes.Equal(stored, kept) {
			t.Fatalf("%q became %q", kept, stored)
		}
	})
}

func TestWhatMostTextsHaveIsShort(t *testing.T) {
	for text, want := range map[string]int{enqueued: 45, claimed: 28, row: 57, `{}`: 2, `{"token":1}`: 4} {
		if got := len(Append(nil, []byte(text))); got != want {
			t.Errorf("%s takes %d bytes, want %d", text, got, want)
		}
	}
}

func TestWhatIsCutShortIsAnError(t *testing.T) {
	stored := Append(nil, []byte(claimed))
	errs := 0
	for n := range stored {
		if text, err := Text(stored[:n]); err != nil {
			errs++
		} else if !strings.HasPrefix(claimed, string(text)) {
			t.Errorf("cut to %d bytes it reads %q", n, text)
		}
	}
	if want := 16 + 4; errs != want { // within the id, and within the number
		t.Errorf("%d errors, want %d", errs, want)
	}
	for _, bad := range []string{"\x01\x00", "\x01\x01short", "\x01\x02", "\x01\x02\x80", "\x01\x1f"} {
		if text, err := Text([]byte(bad)); err == nil {
			t.Errorf("%q reads %q", bad, text)
		}
	}
}

// Where one word begins another, the longer one comes first, and codes stay below what stands for itself.
func TestWordsCanBeToldApart(t *testing.T) {
	for i, word := range words {
		for _, later := range words[i+1:] {
			if strings.HasPrefix(later, word) {
				t.Errorf("%q hides %q", word, later)
			}
		}
	}
	if firstWord+len(words) > firstText {
		t.Errorf("%d words are too many", len(words))
	}
}

func BenchmarkAppend(b *testing.B) {
	var buf []byte
	for b.Loop() {
		buf = Append(buf[:0], []byte(row))
	}
}

func BenchmarkText(b *testing.B) {
	stored := Append(nil, []byte(row))
	for b.Loop() {
		if _, err := Text(stored); err != nil {
			b.Fatal(err)
		}
	}
}
