//go:build !linux

package child

// awaitExit returns when the child has ended and been reaped: without Linux's
// waitid there is no portable way to learn of the one before the other.
func (p *process) awaitExit() {
	_, _ = p.reap() // which keeps them for its next caller
}
