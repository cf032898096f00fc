package main

import (
	"bytes"
	"io"
	"os"

	"golang.org/x/term"
)

// colors is when text is coloured.
type colors string

// The words of --color.
const (
	colorsAuto   colors = "auto" // on a terminal that has them, unless NO_COLOR is set
	colorsAlways colors = "always"
	colorsNever  colors = "never"
)

// String implements pflag.Value.
func (c *colors) String() string {
	if *c == "" {
		return string(colorsAuto)
	}
	return string(*c)
}

// Set implements pflag.Value.
func (c *colors) Set(word string) error {
	switch colors(word) {
	case colorsAuto, colorsAlways, colorsNever:
		*c = colors(word)
		return nil
	}
	return usage("want auto, always or never")
}

// Type implements pflag.Value.
func (*colors) Type() string { return "WHEN" }

// colored reports whether text on a stream is coloured. Where the output goes elsewhere than to a terminal, nothing is: what comes of a command is
// then read by a program, or kept, and its notes may be kept with it.
func (a *app) colored(to io.Writer) bool {
	switch {
	case !a.forPeople():
		return false
	case a.colors == colorsAlways:
		return true
	case a.colors == colorsNever, a.env("NO_COLOR") != "", a.env("TERM") == "dumb":
		return false
	}
	return isTerminal(a.raw.stdout) && isTerminal(to)
}

// isTerminal reports whether a stream is one.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// The colours, as terminals are told of them.
const (
	green  = "\x1b[32m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	blue   = "\x1b[34m"
	faint  = "\x1b[2m"
	plain  = "\x1b[0m"
)

// marks are the signs that lines begin with, and their colours. The word beside a sign says the same without.
func marks() map[string]string {
	return map[string]string{"✔": green, "✖": red, "▲": yellow, "●": blue}
}

// painted is a line with its sign and its verdict in colour, and what only supports it faint. It comes when everything else that a terminal
// would obey has been taken out.
func painted(line []byte) []byte {
	for sign, color := range marks() {
		if rest, ok := bytes.CutPrefix(line, []byte(sign)); ok {
			return append(append([]byte(color+sign), rest...), plain...)
		}
	}
	for _, word := range []string{"  because ", "as of position "} {
		if bytes.HasPrefix(line, []byte(word)) {
			return append(append([]byte(faint), line...), plain...)
		}
	}
	return line
}
