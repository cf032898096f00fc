package child

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes gives the child a group of its own, and has the kernel kill it
// when the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the child has ended, and leaves it unreaped: until
// reap, no other process and no other group can have its number, and signals
// to the group cannot reach a stranger.
func (p *process) awaitExit() {
	for {
		err := unix.Waitid(unix.P_PID, p.pid(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return // whatever it is, reap meets it too and tells it
		}
	}
}
