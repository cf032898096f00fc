package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	// tallyPace is how often the log is looked at while lines run.
	tallyPace = 30 * time.Millisecond
	// sweepWait is how long the first line waits for what the first sweep gives back.
	sweepWait = 2 * time.Second
	// endWait is how long the end waits for the messages of the batch and its inputs to be settled.
	endWait = 10 * time.Second
	// inputWait is how long it waits for this process's worker to complete the message of the input that it has read.
	inputWait = time.Second
)

// progress follows a batch, draws how far it is where standard error is a terminal, and ends the work when nothing is left.
type progress struct {
	batch *batch
	out   *console
	tally *tally
	bar   *progressbar.ProgressBar // nil draws nothing
	began time.Time
	done  int // when this process began
	drawn time.Time
	waits waiting
	ended time.Time // when no line was left; zero while there are any
}

func newProgress(b *batch, out *console, t *tally) *progress {
	p := &progress{batch: b, out: out, tally: t, began: time.Now(), waits: waiting{batch: b, out: out}}
	file, ok := out.stderr.(*os.File)
	if ok && term.IsTerminal(int(file.Fd())) && b.app.env("TERM") != "dumb" {
		p.drawOn(file)
	}
	return p
}

// drawOn draws the progress on a terminal, around what is said there.
func (p *progress) drawOn(terminal io.Writer) {
	p.bar = progressbar.NewOptions64(1,
		progressbar.OptionSetWriter(terminal), progressbar.OptionSetWidth(24), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false), progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: "░", BarStart: " ", BarEnd: " "}),
	)
	p.out.clear = func() { _ = p.bar.Clear() }
	p.out.redraw = func() { _ = p.bar.RenderBlank() }
}

// follow counts until ctx ends, and calls finish when nothing is left to do.
func (p *progress) follow(ctx context.Context, reading *reading, finish func()) error {
	err := p.start(ctx)
	ticker := time.NewTicker(tallyPace)
	defer ticker.Stop()
	for err == nil && ctx.Err() == nil {
		var over bool
		if over, err = p.look(ctx, reading); over {
			finish()
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	if ctx.Err() != nil {
		return p.last()
	}
	finish()
	return err
}

// start counts what there is and says so.
func (p *progress) start(ctx context.Context) error {
	if err := p.tally.catchUp(ctx); err != nil {
		return err
	}
	if err := p.awaitSweep(ctx); err != nil {
		return err
	}
	p.first()
	return nil
}

// awaitSweep waits a little until what the dead held is given back, so that the first line can tell of it.
func (p *progress) awaitSweep(ctx context.Context) error {
	deadline := time.NewTimer(sweepWait)
	defer deadline.Stop()
	ticker := time.NewTicker(tallyPace)
	defer ticker.Stop()
	for {
		known, err := p.batch.peers(ctx)
		if err != nil {
			return err
		}
		lines := 0
		others, _ := p.tally.holders()
		for id, n := range others {
			if known[id].life == gone {
				lines += n
			}
		}
		if lines == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return nil
		case <-ticker.C:
		}
		if err := p.tally.catchUp(ctx); err != nil {
			return err
		}
	}
}

// look counts what is new, says what there is to say, and reports whether the work is over.
func (p *progress) look(ctx context.Context, reading *reading) (bool, error) {
	over := reading.over() // before counting: what it made durable until then is counted below
	if err := p.tally.catchUp(ctx); err != nil {
		return false, err
	}
	for _, text := range p.tally.takenBack() {
		p.out.say("%s: %s", p.batch.name, text)
	}
	now := p.tally.now()
	p.draw(now)
	switch {
	case !over:
		return false, nil
	case reading.err() != nil:
		p.batch.giveBack()
		return true, nil
	case now.open() > 0:
		p.ended = time.Time{}
		return false, p.waits.look(ctx, p.tally)
	}
	if p.ended.IsZero() {
		p.ended = time.Now()
	}
	settled, err := p.batch.settle(ctx, reading, p.tally, time.Since(p.ended))
	return settled || time.Since(p.ended) > endWait, err
}

// first says what this process begins with.
func (p *progress) first() {
	now := p.tally.now()
	p.done = now.done
	parts := []string{fmt.Sprintf("%s done", comma(now.done))}
	parts = append(parts, p.tally.takenBack()...)
	parts = append(parts, fmt.Sprintf("%s waiting", comma(now.waiting)))
	if now.dead > 0 {
		parts = append(parts, fmt.Sprintf("%s dead-lettered", comma(now.dead)))
	}
	if now.done > 0 || len(parts) > 2 {
		p.out.say("%s: %s", p.batch.name, strings.Join(parts, " · "))
		return
	}
	if p.batch.app.batch != "" {
		p.out.say("%s · %s · resume with: %s", p.batch.name, p.batch.app.tilde(p.batch.location.file), p.batch.resumeWith())
	}
}

// last counts what came in at the very end and takes the bar away.
func (p *progress) last() error {
	err := p.tally.catchUp(context.Background())
	if p.bar != nil {
		p.out.mu.Lock()
		_ = p.bar.Clear()
		p.out.clear, p.out.redraw = nil, nil
		p.out.mu.Unlock()
	}
	return err
}

func (p *progress) draw(now counted) {
	full := now.open() == 0
	if p.bar == nil || now.all() == 0 || full == p.bar.IsFinished() && time.Since(p.drawn) < 100*time.Millisecond {
		return
	}
	p.drawn = time.Now()
	text := fmt.Sprintf("%s/%s · %d running · %d dead", comma(now.done), comma(now.all()), now.running, now.dead)
	if rate := float64(now.done-p.done) / time.Since(p.began).Seconds(); rate > 0 {
		left := time.Duration(float64(now.open())/rate*float64(time.Second)) + time.Second/2
		text += fmt.Sprintf(" · %.3g/s · %s left", rate, left.Truncate(time.Second))
	}
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	if !full && p.bar.IsFinished() {
		p.bar.Reset() // there are lines again
	}
	p.bar.Describe(text)
	p.bar.ChangeMax64(int64(now.all()))
	_ = p.bar.Set64(int64(now.ended()))
}

// comma writes a number with separators.
func comma(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
