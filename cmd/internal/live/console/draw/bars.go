// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"math"
	"strconv"
	"time"
)

// A Part of a bar.
type Part struct {
	Text  string
	Count int
	// Class is a state such as ok, or a color such as o1.
	Class string
}

const barWidth, barHeight = 640, 26

// Parts draws a bar whose parts are as wide as their counts, and what each is below it. Parts without a count
// are left out.
func Parts(label string, parts []Part) string {
	c := &canvas{width: barWidth}
	total := 0
	for _, p := range parts {
		total += p.Count
	}
	x, y := 0, barHeight+20
	for _, p := range parts {
		if p.Count == 0 {
			continue
		}
		width := max(barWidth*p.Count/total, 3)
		if x+width > barWidth {
			width = barWidth - x
		}
		c.rect(x, 2, width, barHeight, "bar "+p.Class)
		x += width
		c.rect(0, y-10, 10, 10, "bar "+p.Class)
		c.text(18, y, barWidth-18, "name", strconv.Itoa(p.Count)+" × "+p.Text)
		y += lineHeight + 4
	}
	c.height = y
	return c.svg(label)
}

// A Step of a rollout, with the share of what it includes in percent.
type Step struct {
	Text    string
	Percent int
	Class   string // done, now or later
}

// Steps draws the steps of a rollout beside each other, each filled up to its share.
func Steps(label string, steps []Step) string {
	c := &canvas{}
	const width, height, gap = 150, 56, 14
	for i, s := range steps {
		x := i * (width + gap)
		filled := (height - 8) * s.Percent / 100
		c.rect(x, 2, width, height, "station "+s.Class)
		c.rect(x+4, 6+height-8-filled, 8, filled, "bar "+s.Class)
		c.text(x+22, 24, width-26, "name", s.Text)
		c.text(x+22, 42, width-26, "note", strconv.Itoa(s.Percent)+" %")
		if i > 0 {
			c.arrow(x-gap, 30, x-1)
		}
	}
	c.width, c.height = max(len(steps)*(width+gap)-gap, 1)+2, height+6
	return c.svg(label)
}

// A Bin of a histogram has the count of values up to a bound, which is text.
type Bin struct {
	Bound string
	Count float64
	Class string
}

// Histogram draws a distribution as columns. Their heights have a logarithmic scale, so that a few slow calls
// among many fast ones are seen.
func Histogram(label string, bins []Bin) string {
	c := &canvas{}
	const width, height = 58, 72
	highest := 0.0
	for _, b := range bins {
		highest = max(highest, b.Count)
	}
	for i, b := range bins {
		x, tall := i*width, 0
		if b.Count > 0 {
			tall = max(int(float64(height)*math.Log1p(b.Count)/math.Log1p(highest)), 2)
			c.text(x+2, 12+height-tall, width, "note", number(b.Count))
		}
		c.add(`<rect x="%d" y="%d" width="%d" height="%d" class="bar %s"/>`, x+2, 16+height-tall, width-6, tall, b.Class)
		c.text(x+2, height+32, width, "note", b.Bound)
	}
	c.add(`<path class="edge" d="M0 %dH%d"/>`, height+16, len(bins)*width)
	c.width, c.height = max(len(bins)*width, 1), height+38
	return c.svg(label)
}

// number shortens a count to five characters.
func number(count float64) string {
	for _, unit := range []string{"", "k", "M"} {
		if count < 10000 || unit == "M" {
			return strconv.FormatFloat(math.Round(count), 'f', 0, 64) + unit
		}
		count /= 1000
	}
	return ""
}

// A Cell of a heat map. Share is from 0 to 1, negative where there is nothing to measure.
type Cell struct {
	Text  string
	Share float64
}

// Heat draws a table whose cells are colored by their shares, in five steps.
func Heat(label string, rows, columns []string, cells [][]Cell) string {
	c := &canvas{}
	const first, width, height = 160, 118, 28
	for j, column := range columns {
		c.text(first+j*width+4, 16, width-4, "title", column)
	}
	for i, row := range rows {
		y := 24 + i*height
		c.text(0, y+18, first-8, "name", row)
		for j, cell := range cells[i] {
			class := "heat none"
			if cell.Share >= 0 {
				class = "heat h" + strconv.Itoa(min(int(math.Ceil(cell.Share*4)), 4))
			}
			c.rect(first+j*width+1, y+1, width-3, height-3, class)
			c.text(first+j*width+10, y+18, width-12, "name", cell.Text)
		}
	}
	c.width, c.height = first+len(columns)*width, 28+len(rows)*height
	return c.svg(label)
}

// A Span is how many pods of a kind were created at a time.
type Span struct {
	At    time.Time
	Class string
}

// Timeline draws when things were created, as ticks between the first and the last, in rows by class.
func Timeline(label string, rows []string, classes []string, spans []Span) string {
	c := &canvas{width: 200 + barWidth, height: 30 + len(rows)*26}
	if len(spans) == 0 {
		return ""
	}
	from, to := spans[0].At, spans[0].At
	for _, s := range spans {
		if s.At.Before(from) {
			from = s.At
		}
		if s.At.After(to) {
			to = s.At
		}
	}
	length := max(to.Sub(from), time.Second)
	for i, row := range rows {
		y := 4 + i*26
		c.text(0, y+16, 190, "name", row)
		c.add(`<path class="edge" d="M200 %dH%d"/>`, y+12, 200+barWidth)
		last := -10
		for _, s := range spans {
			if s.Class != classes[i] {
				continue
			}
			if x := 200 + int(float64(barWidth-8)*float64(s.At.Sub(from))/float64(length)); x-last > 1 { // ticks at the same place are one
				c.add(`<rect x="%d" y="%d" width="7" height="18" rx="2" class="bar %s"/>`, x, y+3, s.Class)
				last = x
			}
		}
	}
	y := 20 + len(rows)*26
	c.text(200, y, 200, "note", from.UTC().Format("2006-01-02 15:04"))
	c.text(200+barWidth-120, y, 130, "note", to.UTC().Format("2006-01-02 15:04"))
	return c.svg(label)
}
