//go:build unix

package child

import "syscall"

// terminate asks every process of the child's group to stop.
func (p *process) terminate() { signalGroup(p.pid(), syscall.SIGTERM) }

// kill ends every process of the child's group.
func (p *process) kill() { signalGroup(p.pid(), syscall.SIGKILL) }

// signalGroup signals a group. There is no error to act on: a group that is
// gone is what was wanted, and one that has changed its user cannot be had.
// A group of 1 or less would be every process there is, or our own group.
func signalGroup(group int, signal syscall.Signal) {
	if group > 1 {
		_ = syscall.Kill(-group, signal)
	}
}
