//go:build unix

package pgtest

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// watchdog ends a cluster with the process that started it.
//
//go:embed watchdog.sh
var watchdog string

const (
	pause    = 20   // milliseconds between two looks
	patience = 3000 // looks: a minute
)

// longestDir bounds a cluster's folder: the socket in it has a path of at most 103 bytes on some systems.
const longestDir = 80

// process is what runs of a cluster. It has no goroutine, so that a server can stay until its process ends, and looks at no
// clock that a test could have stopped.
type process struct {
	credential *syscall.Credential // nil where it runs as we do
	server     int                 // its number; 0 while it does not run
	watchdog   int
	lifeline   *os.File // its other end is the watchdog's standard input
}

// settle makes the folder and has the watchdog guard it.
func (c *cluster) settle() error {
	var err error
	if c.credential, err = servant(); err != nil {
		return err
	}
	if c.dir, err = c.newDir(); err != nil {
		return err
	}
	if err := c.guard(); err != nil {
		return errors.Join(err, os.RemoveAll(c.dir))
	}
	return nil
}

// servant is whom the server runs as: Postgres refuses to be root.
func servant() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("postgres does not run as root, and there is no user postgres or nobody to run it as")
}

func (c *cluster) newDir() (string, error) {
	var errs []error
	for _, parent := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if len(parent) > longestDir-len("/foundling-postgres-1234567890") || c.credential != nil && !open(parent) {
			errs = append(errs, fmt.Errorf("%s: too long, or closed to others than root", parent))
			continue
		}
		dir, err := os.MkdirTemp(parent, "foundling-postgres-")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", err
		}
		return dir, c.own(dir)
	}
	return "", fmt.Errorf("no folder for a server: %w", errors.Join(errs...))
}

// open tells whether everybody may pass through a folder.
func open(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// own gives a file to whom the server runs as.
func (c *cluster) own(path string) error {
	if c.credential == nil {
		return nil
	}
	return os.Chown(path, int(c.credential.Uid), int(c.credential.Gid))
}

// guard starts the watchdog.
func (c *cluster) guard() error {
	listen, lifeline, err := os.Pipe()
	if err != nil {
		return err
	}
	defer listen.Close()
	cmd := exec.Command("/bin/sh", "-c", watchdog, "watchdog", c.dir)
	cmd.Dir, cmd.Stdin = "/", listen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of the terminal's signals
	if err := cmd.Start(); err != nil {
		return errors.Join(err, lifeline.Close())
	}
	c.watchdog, c.lifeline = cmd.Process.Pid, lifeline
	return cmd.Process.Release() // its number is enough
}

// remove ends what runs and removes what there is.
func (c *cluster) remove() error {
	if c.lifeline == nil {
		return nil
	}
	err := c.lifeline.Close()
	c.lifeline = nil
	if c.server != 0 {
		reap(c.server)
		c.server = 0
	}
	reap(c.watchdog)
	if _, left := os.Stat(c.dir); left == nil {
		err = errors.Join(err, fmt.Errorf("%s is still there", c.dir))
	}
	return err
}

// command is a program of the server's, run as its user and away from our environment.
func (c *cluster) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(c.path(program), args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.credential}
	return cmd
}

// start returns when the server answers. A server that was killed is started over what it left behind.
func (c *cluster) start() error {
	if c.server != 0 {
		return errors.New("it runs")
	}
	for range patience {
		err := c.launch()
		if err == nil || !strings.Contains(err.Error(), "shared memory block") {
			return err
		}
		rest() // the last of the killed server's processes have not noticed yet
	}
	return errors.New("the processes of the killed server do not end")
}

func (c *cluster) launch() error {
	log, err := os.OpenFile(c.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	end, err := log.Seek(0, 2)
	if err != nil {
		return err
	}
	cmd := c.command("postgres", "-D", c.data())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	c.server = cmd.Process.Pid
	if err := cmd.Process.Release(); err != nil {
		return err
	}
	for range patience {
		if c.gone() {
			return c.complaint(end)
		}
		if c.ready() {
			return nil
		}
		rest()
	}
	return errors.Join(errors.New("it does not become ready"), c.kill())
}

// ready tells by the server's own notes whether it takes connections. Those of a killed one bear another number.
func (c *cluster) ready() bool {
	text, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	lines := strings.Split(string(text), "\n")
	return err == nil && len(lines) > 7 && lines[0] == strconv.Itoa(c.server) && strings.TrimSpace(lines[7]) == "ready"
}

// gone tells whether the server has ended, and reaps it.
func (c *cluster) gone() bool {
	if c.server == 0 {
		return true
	}
	pid, err := unix.Wait4(c.server, nil, unix.WNOHANG, nil)
	if pid == c.server || err == unix.ECHILD {
		c.server = 0
	}
	return c.server == 0
}

// stop ends the server as an operator would: what runs is rolled back, all is written.
func (c *cluster) stop() error {
	if c.gone() {
		return errors.New("it does not run")
	}
	if err := unix.Kill(c.server, unix.SIGINT); err != nil {
		return err
	}
	for range patience {
		if c.gone() {
			return nil
		}
		rest()
	}
	return errors.Join(errors.New("it does not stop"), c.kill())
}

// kill ends the server and all its processes at once, with no chance to write anything.
func (c *cluster) kill() error {
	if c.gone() {
		return errors.New("it does not run")
	}
	all := append([]int{c.server}, children(c.server)...)
	for _, pid := range all {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && err != unix.ESRCH {
			return err
		}
	}
	reap(c.server)
	c.server = 0
	return nil
}

// children are the processes a process has started. One that begins in this moment is not among them.
func children(parent int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	if len(stats) == 0 {
		out, _ := exec.Command("pgrep", "-P", strconv.Itoa(parent)).Output() // an error where there are none
		for _, field := range strings.Fields(string(out)) {
			pid, _ := strconv.Atoi(field)
			pids = append(pids, pid)
		}
		return slices.DeleteFunc(pids, func(pid int) bool { return pid <= 1 })
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		_, rest, ok := strings.Cut(string(text), ") ") // its name could hold anything but this
		fields := strings.Fields(rest)
		if err != nil || !ok || len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// reap waits for a process of ours.
func reap(pid int) {
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			return
		}
	}
}

// rest waits a moment of the system's time.
func rest() { _, _ = unix.Poll(nil, pause) }
