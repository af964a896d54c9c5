// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlotOfWhatJSONHas(t *testing.T) {
	r := someResults()
	r.Reviews[0].Title = "a <title> & more"
	var data bytes.Buffer
	if err := writeJSON(&data, r, judge(limits, r)); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	from, to := filepath.Join(folder, "results.json"), filepath.Join(folder, "plot.svg")
	if err := os.WriteFile(from, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := plotFile(from, to); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	again, err := plot(r)
	if err != nil || !bytes.Equal(got, again) {
		t.Errorf("the same results give another plot (%v)", err)
	}
	var direct, read bytes.Buffer
	if err := errors.Join(writeText(&direct, r, judge(limits, r)), run(t.Context(), []string{"-from", from}, &read, io.Discard)); err != nil {
		t.Fatal(err)
	}
	if direct.String() != read.String() {
		t.Errorf("-from prints other tables:\n%s\n%s", &direct, &read)
	}
	bars := 0
	decoder := xml.NewDecoder(bytes.NewReader(got))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, got)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch start.Name.Local {
		case "rect":
			bars++
		case "svg", "style", "text", "tspan":
		default:
			t.Errorf("the plot has an element %s", start.Name.Local)
		}
	}
	if bars-1 != len(r.Reviews) { // one is the background
		t.Errorf("%d bars for %d measurements", bars-1, len(r.Reviews))
	}
	for _, want := range []string{"a &lt;title&gt; &amp; more", "2.00 ×", ">controller-runtime<"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the plot has no %q:\n%s", want, got)
		}
	}
}

func TestWhatCannotBePlottedIsRefused(t *testing.T) {
	quick := someResults()
	quick.Quick = true
	for name, r := range map[string]*results{
		"nothing":         {},
		"a quick run":     quick,
		"ratios below 0":  {Reviews: []measurement{{RatioToFloor: -1}}},
		"ratios too high": {Reviews: []measurement{{RatioToFloor: 1e9}}},
	} {
		if _, err := plot(r); err == nil {
			t.Errorf("%s: plotted", name)
		}
	}
	if err := plotFile("", "plot.svg"); err == nil || !strings.Contains(err.Error(), "-from") {
		t.Errorf("without results: %v", err)
	}
	if err := plotFile(filepath.Join(t.TempDir(), "absent.json"), "plot.svg"); err == nil {
		t.Error("a file that is not there is plotted")
	}
}
