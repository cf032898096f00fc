// Command serve has a Postgres ready for as long as a run of tests lasts. It finds the server that DATABASE_URL names or starts one,
// and prints three lines: a DSN, the server's version, and what this machine lacks to start others. When its standard input ends, or
// at a SIGTERM, it removes what it started. With -find it only tells by how it ends whether this machine has a server's binaries.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/foundling-go/foundling/internal/pgtest"
)

func main() {
	find := flag.Bool("find", false, "only look for a server's binaries")
	flag.Parse()
	do := serve
	if *find {
		do = pgtest.FindBinaries
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	signal.Ignore(os.Interrupt, syscall.SIGHUP) // whoever started it hears them too, and then ends it
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	run, err := pgtest.StartRun(ctx)
	if err != nil {
		return err
	}
	lacks := ""
	if run.Binaries != nil {
		lacks = run.Binaries.Error()
	}
	_, err = fmt.Printf("%s\n%s\n%s\n", run.DSN, run.Version, lacks)
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	select {
	case <-end:
	case errInput := <-ended:
		err = errors.Join(err, errInput)
	}
	return errors.Join(err, run.Close())
}
