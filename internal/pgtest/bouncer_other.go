//go:build !unix

package pgtest

func (b *Bouncer) start(string, func(port int) string) error { return errUnix }
