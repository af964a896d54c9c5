// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
)

// plotFile draws what `bench -json` has printed into one file as an SVG into another.
func plotFile(from, to string) error {
	if from == "" {
		return errors.New("-plot needs -from FILE: what -json has printed")
	}
	r, err := readResults(from)
	if err != nil {
		return err
	}
	picture, err := plot(r.results)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, picture, 0o644) //nolint:gosec // for everybody to read
}

// Sizes of the plot, in pixels.
const (
	plotWidth  = 860.0
	plotLabels = 170.0 // where bars begin
	plotBars   = 520.0 // the longest bar
	barHeight  = 16.0
	barStep    = 21.0
	groupGap   = 34.0
	plotTop    = 74.0
)

// barClasses are the colours of servers; others are drawn as the library is.
var barClasses = map[string]string{floorName: "f", neighbourName: "n", sallyportName: "s"}

// plot draws a bar for the CPU time of a review on each server of each case, in
// multiples of the floor. The same results give the same bytes. Results without ratios, and
// those of a quick run, which mean nothing, are refused.
func plot(r *results) ([]byte, error) {
	longest := 0.0
	for _, m := range r.Reviews {
		if m.RatioToFloor < 0 || m.RatioToFloor > 1e6 {
			return nil, fmt.Errorf("the ratio of %s, %s is %g", m.Server, m.Title, m.RatioToFloor)
		}
		longest = max(longest, m.RatioToFloor)
	}
	switch {
	case r.Quick:
		return nil, errors.New("it is of a quick run, whose figures mean nothing")
	case longest == 0:
		return nil, errors.New("it has no reviews")
	}
	var bars bytes.Buffer
	y, title := plotTop, ""
	for _, m := range r.Reviews {
		if m.Title != title {
			if title != "" {
				y += groupGap - barStep + barHeight
			}
			title = m.Title
			fmt.Fprintf(&bars, `<text class="t" x="16" y="%.0f">%s</text>`+"\n", y, xmlText(title))
			y += 9
		}
		class, ok := barClasses[m.Server]
		if !ok {
			class = "s"
		}
		width := max(m.RatioToFloor/longest*plotBars, 1)
		fmt.Fprintf(&bars, `<text x="%.0f" y="%.0f" text-anchor="end">%s</text>`, plotLabels-10, y+12.5, xmlText(m.Server))
		fmt.Fprintf(&bars, `<rect class="%s" x="%.0f" y="%.0f" width="%.1f" height="%.0f" rx="2"/>`, class, plotLabels, y, width, barHeight)
		fmt.Fprintf(&bars, `<text x="%.1f" y="%.0f">%.2f × <tspan class="d">%.0f µs</tspan></text>`+"\n", plotLabels+width+8, y+12.5, m.RatioToFloor, m.CPUMicros)
		y += barStep
	}
	height := y + 14
	m := r.Machine
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" role="img" aria-label="CPU time of a review in multiples of the cheapest TLS server">
<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}
.h{font-weight:600;font-size:15px}.t{font-weight:600}.d{fill:#6e7781}.p{fill:#fff;stroke:#d1d9e0}
.f{fill:#8c959f}.n{fill:#bc6c25}.s{fill:#1a7f37}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.d{fill:#8b949e}.p{fill:#161b22;stroke:#3d444d}.f{fill:#6e7681}.n{fill:#db8a45}.s{fill:#3fb950}
}
</style>
<rect class="p" x="0.5" y="0.5" width="%.0f" height="%.0f" rx="8"/>
<text class="h" x="16" y="26">CPU time of a review, in multiples of the cheapest TLS server</text>
<text class="d" x="16" y="46">%s</text>
`, plotWidth, height, plotWidth, plotWidth-1, height-1,
		xmlText(fmt.Sprintf("kube-apiserver %s, %s, %s, %d CPUs shared by all. Machines differ, ratios hold.", m.APIServer, m.Go, m.OS, m.CPUs)))
	out.Write(bars.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes(), nil
}

func xmlText(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text)) // a buffer takes everything
	return out.String()
}
