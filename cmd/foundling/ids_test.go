package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/events"
	"github.com/foundling-go/foundling/store/memory"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// idEnding is an id that ends in these digits.
func idEnding(digits string) events.ID {
	const head = "01990b1c-0000-7000-8000-000000000000"
	return uuid.MustParse(head[:len(head)-len(digits)] + digits)
}

func TestIDsPrintAsShortAsTheyCan(t *testing.T) {
	for _, test := range []struct {
		name     string
		messages int64
		shown    []events.ID
		want     string // of the first
	}{
		{"nothing else", 0, []events.ID{idEnding("abcdea31")}, "…a31"},
		{"others end otherwise", 2, []events.ID{idEnding("abcdea31"), idEnding("abcdea32")}, "…a31"},
		{"the same message twice", 1, []events.ID{idEnding("abcdea31"), idEnding("abcdea31")}, "…a31"},
		{"others end alike", 2, []events.ID{idEnding("abcdea31"), idEnding("abcd7a31")}, "…ea31"},
		{"as many as three digits bear", 64, []events.ID{idEnding("abcdea31")}, "…a31"},
		{"more than three digits bear", 65, []events.ID{idEnding("abcdea31")}, "…ea31"},
		{"a million", 1e6, []events.ID{idEnding("abcdea31")}, "…bcdea31"},
		{"more than there can be", 1 << 62, []events.ID{idEnding("abcdea31")}, "…0000000abcdea31"},
		{"no id", 0, []events.ID{{}}, "–"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := shorten(test.messages, test.shown...).text(test.shown[0]); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// What is printed tells all ids apart and is read back as the end of the id it was printed for, and of no other that was shown.
func TestWhatIsPrintedIsUniqueAndReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) events.ID {
			return idEnding(rapid.StringMatching(`[ab]{6,10}`).Draw(t, "end"))
		}), 1, 40, rapid.ID[events.ID]).Draw(t, "ids")
		short := shorten(rapid.Int64Range(0, 1e9).Draw(t, "messages"), ids...)
		for _, id := range ids {
			tail, err := parseTail("message", short.text(id))
			if err != nil {
				t.Fatal(err)
			}
			for _, other := range ids {
				if ends := strings.HasSuffix(tailOf(other, 32), string(tail)); ends != (other == id) {
					t.Errorf("%s prints as %s, which is the end of %s: %t", id, short.text(id), other, ends)
				}
			}
		}
	})
}

func TestParseTail(t *testing.T) {
	for _, test := range []struct{ word, want string }{
		{"a31", "a31"},
		{"…a31", "a31"},
		{"...a31", "a31"},
		{"A31", "a31"},
		{"7", "7"},
		{"01990b1c-0000-7000-8000-00000000abcd", "01990b1c00007000800000000000abcd"},
		{"8000-00000000abcd", "800000000000abcd"},
		{"", ""},
		{"…", ""},
		{"xyz", ""},
		{"a31 ", ""},
		{"-", ""},
		{strings.Repeat("a", 33), ""},
		{"a\x00", ""},
	} {
		got, err := parseTail("message", test.word)
		if string(got) != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%q: %q, %v; want %q", test.word, got, err, test.want)
		}
		if err != nil && codeOf(err) != exitUsage {
			t.Errorf("%q: exit status %d, want %d", test.word, codeOf(err), exitUsage)
		}
	}
}

func TestResolve(t *testing.T) {
	s := memory.New(memory.Options{})
	client, err := foundling.NewClient(s, foundling.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	topic := foundling.NewTopic[[]byte]("mail", foundling.TopicOptions{})
	ends := []string{"a31", "ba31", "0000c07", "1c07", "2c07", "3c07", "4c07", "5c07", "fff"}
	for _, end := range ends {
		if _, err := topic.Enqueue(t.Context(), client, []byte("x"), foundling.EnqueueOptions{ID: idEnding(end)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		words []string
		want  string // the ids' ends, or a part of the error
		code  int
	}{
		{[]string{"ff"}, "fff", 0},
		{[]string{"…ba31", "fff"}, "ba31 fff", 0},
		{[]string{idEnding("a31").String()}, "a31", 0},
		{[]string{idEnding("a31").String(), "…fff"}, "a31 fff", 0},
		{[]string{"fff", "fff"}, "fff fff", 0},
		{[]string{"a31"}, fmt.Sprintf("2 messages end in a31: %s, %s", idEnding("a31"), idEnding("ba31")), exitUsage},
		{[]string{"c07"}, fmt.Sprintf("6 messages end in c07: %s, ", idEnding("c07")), exitUsage},
		{[]string{"c07"}, fmt.Sprintf(", %s and 1 more", idEnding("4c07")), exitUsage},
		{[]string{"fff", "e"}, "no message of this store ends in e", exitNotFound},
		{[]string{idEnding("eee").String()}, "no message " + idEnding("eee").String(), exitNotFound},
		{[]string{"fff", "nine"}, `message "nine"`, exitUsage},
	} {
		ids, err := resolve(t.Context(), s, test.words...)
		if codeOf(err) != test.code {
			t.Errorf("%q: %v, exit status %d, want %d", test.words, err, codeOf(err), test.code)
			continue
		}
		if err != nil {
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q: error %q does not say %q", test.words, err, test.want)
			}
			continue
		}
		var want []events.ID
		for _, end := range strings.Fields(test.want) {
			want = append(want, idEnding(end))
		}
		if fmt.Sprint(ids) != fmt.Sprint(want) {
			t.Errorf("%q: %v, want %v", test.words, ids, want)
		}
	}
}
