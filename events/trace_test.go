package events_test

import (
	"strings"
	"testing"

	"github.com/foundling-go/foundling/events"
)

func TestTraceparent(t *testing.T) {
	good := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if got := events.Traceparent(good); got != good {
		t.Errorf("a good one becomes %q", got)
	}
	for name, text := range map[string]string{
		"nothing":               "",
		"another version":       "01" + good[2:],
		"upper case":            strings.ToUpper(good),
		"no hexadecimal digit":  strings.Replace(good, "a", "g", 1),
		"a trace id of zeros":   "00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"a span id of zeros":    "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"something behind":      good + "-00",
		"something before":      " " + good,
		"parts of other length": "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
		"a part too few":        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331001",
		"a line of its own":     good[:54] + "\n",
	} {
		if got := events.Traceparent(text); got != "" {
			t.Errorf("%s: %q is kept as %q", name, text, got)
		}
	}
}
