// Package child runs a command for one message, so that it ends with us.
//
// A [Template] turns a payload into a command line, never through a shell. A
// [Runner] runs it, holds its output, and tells how it ended:
//
//	func main() {
//		child.MaybeWatcher() // before anything else
//		…
//	}
//
//	template, err := child.NewTemplate(argv, child.Argument) // says at once if the command does not exist
//	runner, err := child.New(child.Options{})
//	defer runner.Close()
//	spec, err := template.Fill(payload) // ErrNUL: no such argument can be passed
//	spec.Env = []string{"FOUNDLING_ATTEMPT=1"}
//	result, err := runner.Run(ctx, spec)
//	defer result.Close()
//
// # What is promised when this process dies
//
// Each child leads a process group of its own, which its own children belong
// to unless they leave it (setsid, or a shell with job control).
//
// On Unix a Runner has one watcher: this program started once more, in its own
// session, reading a pipe that only this process can write to. It is told each
// group that starts or ends. When the pipe closes, because this process ended
// in whatever way, SIGKILL and a crash included, it kills the groups still
// running and ends. So nothing that stays in its group outlives this process
// by more than the moment this takes.
//
// On Linux the kernel kills the child itself too (a parent-death signal), even
// where the watcher has been killed. It is sent when the *thread* that started
// the child ends, so one goroutine, locked to its thread, starts them all. A
// set-user-ID program loses it.
//
// A child runs for a moment before its number is known and the watcher told.
// For that moment, on Linux, the watcher knows a mark that the child has in its
// environment (FOUNDLING_CHILD), and finds in /proc what carries it, up to 0.2 s
// after the end. On other Unix systems what starts in that moment, a
// millisecond or so for each child, would stay if this process died just then.
//
// On Windows there are no groups and no watcher: a child that is told to stop
// is terminated, what it started stays, and nothing ends with this process.
//
// A group's number can be used again only when all its members have been
// reaped. On Linux a child is reaped after its group has been struck off the
// watcher's list, so that no stranger's group can be on it. Elsewhere it is
// reaped first, and struck off as soon as its output has ended.
//
// # What is promised when it lives on
//
// When the context ends, the group is asked to stop (SIGTERM), and after
// Options.Grace killed. Run returns only when the child has been reaped.
// Something the child left in the background is left alone, as xargs does,
// unless it holds the child's output open: that is waited for as long as the
// grace, then the group is killed and Result.LeftBehind says so.
//
// A child is in the background of its terminal: it can write to it, but is
// stopped by the system when it reads from it. Its standard input is empty, or
// the payload.
package child
