package child

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	findTries = 20
	findPause = 10 * time.Millisecond
)

// findGroup returns the group of the processes that carry a mark, or 0. The
// kernel kills the marked child itself; this is for what it has started. A
// process in the middle of an exec shows no environment for a moment, hence
// the tries.
func findGroup(mark string) int {
	for range findTries {
		if group := scanForMark(markName + "=" + mark); group != 0 {
			return group
		}
		time.Sleep(findPause)
	}
	return 0
}

// scanForMark looks through the environments of all processes that can be read.
func scanForMark(entry string) int {
	const environs = "/proc/[0-9]*/environ"
	paths, _ := filepath.Glob(environs) // the pattern is well formed
	for _, path := range paths {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+entry+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if group, err := unix.Getpgid(pid); err == nil {
			return group
		}
	}
	return 0
}
