package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
	"unicode/utf8"
)

// plan is what a batch does: the payload of its message.
type plan struct {
	Command  []exact       `json:"command"`
	Dir      exact         `json:"dir,omitempty"` // where COMMAND runs
	Jobs     int           `json:"jobs"`
	Attempts int           `json:"attempts"`
	Timeout  time.Duration `json:"timeout,omitempty"`
	Null     bool          `json:"null,omitempty"`
	Stdin    bool          `json:"stdin,omitempty"`
}

// plan is what the command line asks of a batch that did stored so far: all that the flags say with a COMMAND, and without one only
// what they change. It is nil where neither says what to do.
func (f *runFlags) plan(stored *plan, args []string) (*plan, error) {
	all := len(args) > 0
	p := &plan{}
	switch {
	case all:
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("where COMMAND is to run: %w", err)
		}
		p.Dir = exact(dir)
		for _, arg := range args {
			p.Command = append(p.Command, exact(arg))
		}
	case stored == nil:
		return nil, nil
	default:
		*p = *stored
	}
	if all || f.given("jobs") {
		p.Jobs = f.jobs
	}
	if all || f.given("attempts") {
		p.Attempts = f.attempts
	}
	if all || f.given("timeout") {
		p.Timeout = f.timeout
	}
	if all || f.given("null") {
		p.Null = f.null
	}
	if all || f.given("stdin") {
		p.Stdin = f.stdin
	}
	return p, nil
}

func (p *plan) argv() []string {
	argv := make([]string, len(p.Command))
	for i, arg := range p.Command {
		argv[i] = string(arg)
	}
	return argv
}

// runs reports whether both plans do the same with a line.
func (p *plan) runs(other *plan) bool {
	return slices.Equal(p.Command, other.Command) && p.Dir == other.Dir && p.Stdin == other.Stdin
}

func (p *plan) equal(other *plan) bool {
	return p.runs(other) && p.Jobs == other.Jobs && p.Null == other.Null && p.keeps(other)
}

// keeps reports whether lines that one plan made are tried as the other wants it: what a line is given when it is read stays.
func (p *plan) keeps(other *plan) bool {
	return p.Attempts == other.Attempts && p.Timeout == other.Timeout
}

// enterDir makes the directory where COMMAND is to run this process's own.
func (b *batch) enterDir() error {
	if b.plan.Dir == "" {
		return nil
	}
	if err := os.Chdir(string(b.plan.Dir)); err != nil {
		return &exitError{exitRefused, fmt.Errorf("batch %s: its COMMAND runs in a directory that cannot be entered: %w; make it again, "+
			"or go on from another one with: %s -- COMMAND", b.name, err, b.resumeWith())}
	}
	return nil
}

// exact is a text that a plan keeps byte for byte, in JSON that a person can read: as a string, or as an object with the bytes where
// no string of JSON can hold it.
type exact string

// inexact is the JSON of a text that is not UTF-8.
type inexact struct {
	Bytes []byte `json:"bytes"`
}

// MarshalJSON implements json.Marshaler.
func (e exact) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(e)) {
		return json.Marshal(string(e))
	}
	return json.Marshal(inexact{[]byte(e)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *exact) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err == nil {
		*e = exact(text)
		return nil
	}
	var raw inexact
	if err := json.Unmarshal(b, &raw); err != nil || raw.Bytes == nil {
		return errors.Join(errors.New("want a string, or an object with bytes"), err)
	}
	*e = exact(raw.Bytes)
	return nil
}
