package main

import (
	"os"
	"os/signal"
	"syscall"
)

// hearPipes makes the end of a reader of standard output, or of standard error, an error of writing to it, and not the sudden end of this
// process: what it is doing is brought to its end, and its exit code says what became of that. Children get the signal as usual.
func hearPipes() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
