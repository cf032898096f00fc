package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/foundling-go/foundling"
)

// contentShown is how many bytes of a payload or a result people are shown.
const contentShown = 80

// jsonContent is a payload or a result as JSON has it.
type jsonContent struct {
	Size     int             `json:"size"`     // in bytes
	Codec    *string         `json:"codec"`    // what made them; null is raw bytes
	Erased   bool            `json:"erased"`   // they are kept no more
	Encoding *string         `json:"encoding"` // of the value: json, text, base64, or redacted; null where there is none here
	Value    json.RawMessage `json:"value"`
}

// jsonContent is a payload or a result; nil where there never was one.
func (a *app) jsonContent(c foundling.Content) *jsonContent {
	if c.Size == 0 && !c.Erased {
		return nil
	}
	j := &jsonContent{Size: c.Size, Codec: orNull(c.Codec), Erased: c.Erased, Value: json.RawMessage("null")}
	if c.Bytes == nil {
		return j
	}
	shown := a.redactor.content(c.Bytes)
	encoding := "text"
	var value []byte
	switch {
	case isJSON(shown):
		encoding, value = "json", shown
	case a.redactor != nil: // what has no keys to judge it by was hidden whole
		encoding, value = "redacted", quotedJSON(string(shown))
	case utf8.Valid(shown):
		value = quotedJSON(string(shown))
	default:
		encoding, value = "base64", quotedJSON(base64.StdEncoding.EncodeToString(shown))
	}
	j.Encoding, j.Value = &encoding, value
	return j
}

// isJSON reports whether bytes can stand in JSON as they are: its texts are UTF-8, which json.Valid does not ask for.
func isJSON(b []byte) bool { return json.Valid(b) && utf8.Valid(b) }

func quotedJSON(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte("null")
	}
	return b
}

// contentText is a payload or a result as people are told of it.
func (a *app) contentText(c foundling.Content) string {
	switch {
	case c.Size == 0 && !c.Erased:
		return "none"
	case c.Erased:
		return count(c.Size, "byte") + ", kept no more"
	case c.Bytes == nil:
		return count(c.Size, "byte")
	}
	return count(c.Size, "byte") + ", " + quoted(a.redactor.content(c.Bytes))
}

// quoted is the head of a payload, quoted whatever it holds.
func quoted(payload []byte) string {
	if len(payload) > contentShown {
		return fmt.Sprintf("%q…", payload[:contentShown])
	}
	return fmt.Sprintf("%q", payload)
}
