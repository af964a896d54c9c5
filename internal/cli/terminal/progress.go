// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// patience is how long nothing is shown: most commands end sooner, and what flashes up disturbs.
	patience = time.Second
	// redraw is how often the line is drawn.
	redraw = 200 * time.Millisecond
)

// A Progress is one line at the end of a terminal that says what a command waits for, once that takes longer than a
// second. Nil shows nothing.
type Progress struct {
	out   io.Writer
	width func() int

	mutex  sync.Mutex
	what   string
	count  int
	since  time.Time // of the first wait
	within bool      // the last output was not a whole line
	drawn  bool
	stop   chan struct{} // nil unless the line is being drawn
	ended  bool
}

// NewProgress returns the progress of a command that reports to out; nil if that is not a terminal.
func NewProgress(out io.Writer) *Progress {
	if !Is(out) {
		return nil
	}
	return &Progress{out: out, width: func() int { width, _ := Size(out); return width }}
}

type progressKey struct{}

// With returns a context from which [Waiting] reports to the progress.
func (p *Progress) With(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return context.WithValue(ctx, progressKey{}, p)
}

// Waiting says what the command of a context does now, such as "reading pods". It counts how often that is said in a row.
func Waiting(ctx context.Context, what string) {
	p, ok := ctx.Value(progressKey{}).(*Progress)
	if !ok {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.ended {
		return
	}
	if p.what != what {
		p.what, p.count = what, 0
	}
	p.count++
	if p.stop == nil {
		p.since, p.stop = time.Now(), make(chan struct{})
		go p.keep(p.stop)
	}
}

// keep draws the line until it is stopped.
func (p *Progress) keep(stop chan struct{}) {
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-ticker.C:
			p.mutex.Lock()
			p.draw(now)
			p.mutex.Unlock()
		}
	}
}

// draw draws the line, if it is time.
func (p *Progress) draw(now time.Time) {
	took := now.Sub(p.since)
	if p.ended || p.within || took < patience {
		return
	}
	line := []rune(p.what)
	if p.count > 1 {
		line = append(line, []rune(fmt.Sprintf(" (%d)", p.count))...)
	}
	line = append(line, []rune(fmt.Sprintf(", %s", took.Truncate(time.Second)))...)
	if width := p.width(); width > 1 && len(line) >= width { // a line that is full would begin the next one
		line = line[:width-1]
	}
	for i, char := range line {
		line[i] = printable(char)
	}
	_, _ = io.WriteString(p.out, "\r\x1b[K"+string(line)) // nothing depends on it
	p.drawn = true
}

// erase removes the line.
func (p *Progress) erase() {
	if p.drawn {
		_, _ = io.WriteString(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

// Stop removes the line for good.
func (p *Progress) Stop() {
	if p == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.erase()
	if p.stop != nil && !p.ended {
		close(p.stop)
	}
	p.ended = true
}

// Before returns an output of the command, before whose texts the line is removed. One that is not a terminal
// is returned as it is.
func (p *Progress) Before(out io.Writer) io.Writer {
	if p == nil || !Is(out) {
		return out
	}
	return &interleaved{p, out, out.(descriptor)}
}

// interleaved is a terminal that has the line of a progress between texts.
type interleaved struct {
	progress *Progress
	out      io.Writer
	descriptor
}

// Write implements [io.Writer].
func (i *interleaved) Write(text []byte) (int, error) {
	i.progress.mutex.Lock()
	defer i.progress.mutex.Unlock()
	i.progress.erase()
	if len(text) > 0 {
		i.progress.within = text[len(text)-1] != '\n'
	}
	return i.out.Write(text)
}
