//go:build !unix

package child

import "syscall"

// MaybeWatcher does nothing here: there is no watcher.
func MaybeWatcher() {}

func attributes() *syscall.SysProcAttr { return nil }

// terminate ends the child: it cannot be asked.
func (p *process) terminate() { p.kill() }

// kill ends the child. One that has ended already is what was wanted.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// lifeline stands for the watcher there is not.
type lifeline struct{}

func newLifeline() (*lifeline, error) { return &lifeline{}, nil }

func (*lifeline) expect(string) error { return nil }
func (*lifeline) add(int) error       { return nil }
func (*lifeline) remove(int) error    { return nil }
func (*lifeline) close() error        { return nil }
