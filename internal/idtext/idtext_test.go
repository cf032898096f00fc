package idtext

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func TestWhatIsReadIsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		text := Append([]byte("x"), id)
		if string(text) != "x"+id.String() {
			t.Fatalf("%s is written %s", id, text)
		}
		if again, ok := Parse(text[1:]); !ok || again != id {
			t.Fatalf("%s is read as %s, %t", text, again, ok)
		}
	})
}

func TestOtherFormsAreNotRead(t *testing.T) {
	const text = "01a22b56-8a0b-714c-a5fd-0cbf03c0009f"
	for _, other := range []string{
		"", strings.ToUpper(text), "{" + text + "}", "urn:uuid:" + text, strings.ReplaceAll(text, "-", ""), text[1:], text + " ",
		strings.Replace(text, "a", "g", 1), "{" + text[1:35] + "}",
	} {
		if id, ok := Parse([]byte(other)); ok {
			t.Errorf("%q is read as %s", other, id)
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	id, b := uuid.New(), make([]byte, 0, Len)
	if n := testing.AllocsPerRun(100, func() { b = Append(b[:0], id); _, _ = Parse(b) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
