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

// encode gives a payload's bytes and the name of what made them. Bytes and raw JSON pass through.
func encode(codec Codec, v any) (b []byte, name string, err error) {
	switch v := v.(type) {
	case []byte:
		return v, "", nil
	case json.RawMessage:
		return v, jsonCodec{}.Name(), nil
	}
	if b, err = codec.Marshal(v); err != nil {
		return nil, "", fmt.Errorf("encode payload as %s: %w", codec.Name(), err)
	}
	return b, codec.Name(), nil
}

// decode sets v from a payload's bytes.
func decode(codec Codec, name string, b []byte, v any) error {
	switch v := v.(type) {
	case *[]byte:
		*v = b
		return nil
	case *json.RawMessage:
		*v = b
		return nil
	}
	if name != "" && name != codec.Name() {
		if name != (jsonCodec{}).Name() {
			return fmt.Errorf("payload was made by codec %q, this client has %q", name, codec.Name())
		}
		codec = jsonCodec{}
	}
	if err := codec.Unmarshal(b, v); err != nil {
		return fmt.Errorf("decode payload as %s: %w", codec.Name(), err)
	}
	return nil
}
