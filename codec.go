package foundling

import (
	"encoding/json"
	"fmt"
)

// Codec turns payloads into bytes and back. Its name is stored with each payload it made.
type Codec interface {
	// Name is stored; it must never change its meaning. Empty is kept for raw bytes.
	Name() string
	// Marshal gives the bytes to keep.
	Marshal(v any) ([]byte, error)
	// Unmarshal sets what v points to.
	Unmarshal(b []byte, v any) error
}

type jsonCodec struct{}

func (jsonCodec) Name() string                    { return "json" }
func (jsonCodec) Marshal(v any) ([]byte, error)   { return json.Marshal(v) }
func (jsonCodec) Unmarshal(b []byte, v any) error { return json.Unmarshal(b, v) }

// coded is bytes with the name of what made them.
type coded struct {
	codec string
	bytes []byte
}

// encode gives the bytes of a payload or a result, which an error calls by what it is. Bytes and raw JSON pass through.
func encode(codec Codec, what string, v any) (coded, error) {
	switch v := v.(type) {
	case []byte:
		return coded{"", v}, nil
	case json.RawMessage:
		return coded{jsonCodec{}.Name(), v}, nil
	}
	b, err := codec.Marshal(v)
	if err != nil {
		return coded{}, fmt.Errorf("encode %s as %s: %w", what, codec.Name(), err)
	}
	return coded{codec.Name(), b}, nil
}

// decode sets v from what was encoded.
func decode(codec Codec, c coded, v any) error {
	switch v := v.(type) {
	case *[]byte:
		*v = c.bytes
		return nil
	case *json.RawMessage:
		*v = c.bytes
		return nil
	}
	if c.codec != "" && c.codec != codec.Name() {
		if c.codec != (jsonCodec{}).Name() {
			return fmt.Errorf("it was made by codec %q, this client has %q", c.codec, codec.Name())
		}
		codec = jsonCodec{}
	}
	if err := codec.Unmarshal(c.bytes, v); err != nil {
		return fmt.Errorf("decode as %s: %w", codec.Name(), err)
	}
	return nil
}
