package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// Result is how one run ended, with its output, which may lie in files: Close
// it. The zero Result, of a command that never started, has no output.
type Result struct {
	// Code is the exit status, or -1 where a signal ended the child.
	Code int
	// Ended tells it in words: "exit status 1", "signal: killed".
	Ended string
	// LeftBehind says that something the child had started held its output
	// open past the grace, and was killed.
	LeftBehind bool

	stdout, stderr *held
}

func resultOf(state *os.ProcessState) Result {
	return Result{Code: state.ExitCode(), Ended: state.String()}
}

// OK reports whether the command ran and ended with exit status 0.
func (r Result) OK() bool { return r.Code == 0 && r.Ended != "" }

// WriteStdout writes the whole standard output to w; it can be called again.
func (r Result) WriteStdout(w io.Writer) (int64, error) {
	return writeHeld(w, r.stdout, "standard output")
}

// WriteStderr writes the whole standard error to w; it can be called again.
func (r Result) WriteStderr(w io.Writer) (int64, error) {
	return writeHeld(w, r.stderr, "standard error")
}

func writeHeld(w io.Writer, h *held, what string) (int64, error) {
	if h == nil {
		return 0, nil
	}
	n, err := io.Copy(w, h.content(0, h.size))
	if err == nil && n < h.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, fmt.Errorf("write held %s: %w", what, err)
	}
	return n, nil
}

// Tail returns at most n bytes from the end of standard error, or of standard
// output where there is only white space on the former, for an error message:
// without white space around it, beginning with a whole character, with '?'
// for what is not UTF-8. Other control characters are kept: quote them.
func (r Result) Tail(n int) string {
	if text := tailOf(r.stderr, n); text != "" {
		return text
	}
	return tailOf(r.stdout, n)
}

// spaceBytes is how much white space at the end a tail looks past.
const spaceBytes = 256

func tailOf(h *held, n int) string {
	if h == nil || n <= 0 {
		return ""
	}
	length := min(h.size, int64(n)+spaceBytes)
	// An error message makes do with what can be read.
	b, _ := io.ReadAll(h.content(h.size-length, length))
	text := strings.TrimSpace(string(b))
	if cut := len(text) - n; cut > 0 {
		for cut < len(text) && !utf8.RuneStart(text[cut]) {
			cut++
		}
		text = text[cut:]
	}
	return strings.TrimSpace(strings.ToValidUTF8(text, "?"))
}

// Close drops the output, files included. It can be called again.
func (r Result) Close() error {
	var errs []error
	for _, h := range []*held{r.stdout, r.stderr} {
		if h != nil {
			errs = append(errs, h.close())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("drop held output: %w", err)
	}
	return nil
}
