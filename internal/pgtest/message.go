package pgtest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// Side is one end of a connection.
type Side int

// The sides.
const (
	Client Side = iota
	Backend
)

// Message is one message of the protocol between a client and a server.
type Message struct {
	From Side
	Type byte   // as in the protocol: 'Q', 'P', 'C' …; 0 for those a connection begins with
	Body []byte // without type and length; nobody may change or keep it

	named string // of a Bind: the statement, where that has a name
}

// Text is the statement that a message has carried out: that of a Query, of a Parse without a name, or of a Bind to one with a name, which may have been
// parsed long before. Of a CommandComplete it is the tag ("COMMIT"). It is empty for others.
func (m Message) Text() string {
	if m.From == Backend && m.Type == 'C' || m.From == Client && m.Type == 'Q' {
		text, _, _ := bytes.Cut(m.Body, []byte{0})
		return string(text)
	}
	if name, text, ok := m.parsed(); ok && name == "" {
		return text
	}
	return m.named
}

// parsed is the name and the text of the statement that a Parse carries.
func (m Message) parsed() (name, text string, ok bool) {
	if m.From != Client || m.Type != 'P' {
		return "", "", false
	}
	first, rest, _ := bytes.Cut(m.Body, []byte{0})
	second, _, _ := bytes.Cut(rest, []byte{0})
	return string(first), string(second), true
}

// bound is the name of the statement that a Bind is to; empty for other messages.
func (m Message) bound() string {
	if m.From != Client || m.Type != 'B' {
		return ""
	}
	_, rest, _ := bytes.Cut(m.Body, []byte{0}) // the portal
	name, _, _ := bytes.Cut(rest, []byte{0})
	return string(name)
}

// Says matches messages whose Text begins with this, whatever the case: Says("commit") is true for both the statement and the tag.
func Says(beginning string) func(Message) bool {
	return func(m Message) bool {
		text := strings.TrimSpace(m.Text())
		return text != "" && len(text) >= len(beginning) && strings.EqualFold(text[:len(beginning)], beginning)
	}
}

// largest bounds a message's body.
const largest = 1 << 30

// The codes by which a client asks for an encrypted connection, in the place of a protocol's version.
const (
	codeTLS = 80877103
	codeGSS = 80877104
)

// raw is a message as it goes over the wire.
type raw struct {
	message Message
	bytes   []byte
}

// read takes the next message; begins is for the client's first ones, which have no type.
func read(in *bufio.Reader, from Side, begins header) (raw, error) {
	head := make([]byte, int(begins)) // type, where there is one, and length
	if _, err := io.ReadFull(in, head); err != nil {
		return raw{}, err
	}
	length := binary.BigEndian.Uint32(head[len(head)-4:])
	if length < 4 || length > largest {
		return raw{}, fmt.Errorf("a message of %d bytes", length)
	}
	all := append(head, make([]byte, length-4)...)
	if _, err := io.ReadFull(in, all[len(head):]); err != nil {
		return raw{}, err
	}
	r := raw{Message{From: from, Body: all[len(head):]}, all}
	if begins == typed {
		r.message.Type = all[0]
	}
	return r, nil
}

// header is how many bytes come before a message's body.
type header int

const (
	untyped header = 4
	typed   header = 5
)

// code is what a message without a type has after its length: a protocol's version, or what it is for.
func code(after []byte) uint32 { return binary.BigEndian.Uint32(after) }
