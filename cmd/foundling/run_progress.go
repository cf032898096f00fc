package main

import (
	"context"
	"fmt"
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
}

func newProgress(b *batch, out *console, t *tally) *progress {
	p := &progress{batch: b, out: out, tally: t, began: time.Now()}
	file, ok := out.stderr.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || b.app.env("TERM") == "dumb" {
		return p
	}
	p.bar = progressbar.NewOptions64(1,
		progressbar.OptionSetWriter(file), progressbar.OptionSetWidth(24), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false), progressbar.OptionShowDescriptionAtLineEnd(), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: "░", BarStart: " ", BarEnd: " "}),
	)
	out.clear = func() { _ = p.bar.Clear() }
	out.redraw = func() { _ = p.bar.RenderBlank() }
	return p
}

// follow counts until ctx ends, and calls finish when nothing is left to do.
func (p *progress) follow(ctx context.Context, reading *reading, finish func()) error {
	if err := p.tally.catchUp(ctx); err != nil {
		finish()
		return ignoreEnd(ctx, err)
	}
	p.tally.begin()
	p.tally.awaitSweep(ctx, sweepWait)
	if err := p.tally.catchUp(ctx); err != nil {
		finish()
		return ignoreEnd(ctx, err)
	}
	p.first()
	ticker := time.NewTicker(tallyPace)
	defer ticker.Stop()
	for {
		over := reading.over() // before counting: what it made durable until then is counted below
		if err := p.tally.catchUp(ctx); err != nil {
			finish()
			return ignoreEnd(ctx, err)
		}
		for _, text := range p.tally.takenBack() {
			p.out.say("%s: %s", p.batch.name, text)
		}
		now := p.tally.now()
		p.draw(now)
		if over && (now.open() == 0 || reading.err() != nil) {
			p.batch.release(now.open() == 0 && now.dead == 0 && reading.err() == nil)
			finish()
		}
		select {
		case <-ctx.Done():
			return p.last()
		case <-ticker.C:
		}
	}
}

// ignoreEnd is err, unless it only says that ctx has ended.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// release lets go of the batch's message, as completed where all is done.
func (b *batch) release(complete bool) {
	b.over.Do(func() {
		b.complete = complete
		close(b.ending)
	})
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
		p.out.say("%s · %s · resume with: %s", p.batch.name, p.batch.app.tilde(p.batch.path), p.batch.resumeWith())
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
	if p.bar == nil || now.all() == 0 || time.Since(p.drawn) < 100*time.Millisecond {
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
	p.bar.ChangeMax64(int64(max(now.all(), now.done+1))) // at its maximum the bar would end by itself
	p.bar.Describe(text)
	_ = p.bar.Set64(int64(now.done))
}

// comma writes a number with separators.
func comma(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
