// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// writeJSON writes what writeText says, for programs.
func writeJSON(w io.Writer, r *results, verdicts []verdict) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(judged{r, verdicts})
}

// writeFile writes what writeJSON says to a file, whose folder is made.
func writeFile(file string, r *results, verdicts []verdict) error {
	var out bytes.Buffer
	err := errors.Join(writeJSON(&out, r, verdicts), os.MkdirAll(filepath.Dir(file), 0o755))
	if err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// judged is what is printed as JSON.
type judged struct {
	*results
	Limits []verdict `json:"limits"`
}

// readResults reads what writeJSON has written.
func readResults(file string) (judged, error) {
	out := judged{results: &results{}}
	data, err := os.ReadFile(file)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return out, fmt.Errorf("%s: %w", file, err)
	}
	return out, nil
}

// writeText writes the tables.
func writeText(w io.Writer, r *results, verdicts []verdict) error {
	out := &strings.Builder{}
	m := r.Machine
	fmt.Fprintf(out, "kube-apiserver %s, %s, %s, %d CPUs shared by all; %d rounds of %d ms for each case and server, median.\n",
		m.APIServer, m.Go, m.OS, m.CPUs, m.Rounds, m.WindowMS)
	fmt.Fprintf(out, "Reviews over HTTP/1.1, TLS 1.3, P-256, %d connections. Sizes:", connections)
	for i, name := range slices.Sorted(maps.Keys(m.ReviewSize)) {
		if i > 0 {
			out.WriteString(",")
		}
		fmt.Fprintf(out, " %s %s bytes", name, thousands(m.ReviewSize[name]))
	}
	out.WriteString(".\n\n")

	for _, name := range slices.Sorted(maps.Keys(r.Peers)) {
		fmt.Fprintf(out, "%s is %s.\n", name, r.Peers[name])
	}
	writeReviews(out, r.Reviews)
	if len(r.Creations) > 0 {
		writeCreations(out, "Notebook pods", creators, r.Creations)
	}
	if len(r.Volumes) > 0 {
		writeCreations(out, "Persistent volumes", creators, r.Volumes)
	}
	if len(r.Exported) > 0 {
		writeCreations(out, "Notebook pods, with PodDefaults as policies,", creators, r.Exported)
	}
	if len(r.Burst) > 0 {
		writeCreations(out, "A burst of notebook pods", writers, r.Burst)
	}
	if r.StartSeconds > 0 || r.IdleRSSMiB > 0 {
		writeStarts(out, r)
	}
	if r.Scale != nil {
		writeScale(out, r.Scale)
	}
	if len(r.Backstop) > 0 {
		writeBackstop(out, r.Backstop)
	}
	if len(r.Freshness) > 0 {
		writeFreshness(out, r.Freshness)
	}
	if len(r.Overload) > 0 {
		writeOverload(out, r.Overload)
	}
	if len(r.Listings) > 0 {
		writeListings(out, r.Listings)
	}
	if len(verdicts) > 0 {
		writeVerdicts(out, verdicts, r.Quick)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func writeReviews(out *strings.Builder, rows []measurement) {
	const header, line = "  %-44s %10s %8s %8s %14s %8s %13s\n", "  %-44s %10.0f %8.0f %8.0f %14.1f %8.2f %13.0f\n"
	fmt.Fprintf(out, header, "", "reviews/s", "p50 µs", "p99 µs", "CPU µs/review", "× floor", "peak RSS MiB")
	title := ""
	for _, row := range rows {
		if row.Title != title {
			title = row.Title
			fmt.Fprintln(out, title)
		}
		fmt.Fprintf(out, line, row.Server, row.ReviewsPerSecond, row.P50Micros, row.P99Micros, row.CPUMicros, row.RatioToFloor, row.PeakRSSMiB)
	}
}

func writeCreations(out *strings.Builder, what string, clients int, rows []creation) {
	const header, line = "  %-44s %10s %8s %8s %14s\n", "  %-44s %10.0f %8.1f %8.1f %14s\n"
	fmt.Fprintf(out, "\n%s created through the API server, %d clients\n", what, clients)
	fmt.Fprintf(out, header, "", "creates/s", "p50 ms", "p99 ms", "called over")
	for _, row := range rows {
		name, protocol := row.Server, row.Protocol
		if name == "" {
			name, protocol = "no webhook", "-"
		}
		fmt.Fprintf(out, line, name, row.CreatesPerSecond, row.P50Millis, row.P99Millis, protocol)
	}
	fmt.Fprintln(out, "  (A loopback URL gets HTTP/2 from kube-apiserver if the server offers it, a Service always HTTP/1.1.)")
}

func writeStarts(out *strings.Builder, r *results) {
	const header, line = "  %-44s %10s %13s\n", "  %-44s %10.2f %13.0f\n"
	const withoutFiles = "of this, no pages of the binary"
	fmt.Fprintln(out, "\nsallyport without calls")
	fmt.Fprintf(out, header, "", "s", "RSS MiB")
	if r.StartSeconds > 0 {
		fmt.Fprintf(out, line, "from its start to ready, the most of memory", r.StartSeconds, r.StartPeakRSSMiB)
		fmt.Fprintf(out, header, withoutFiles, "", strconv.FormatFloat(r.StartPeakAnonymousMiB, 'f', 0, 64))
	}
	if r.IdleRSSMiB > 0 {
		fmt.Fprintf(out, header, "with the typical PodDefaults, at rest", "", strconv.FormatFloat(r.IdleRSSMiB, 'f', 0, 64))
		fmt.Fprintf(out, header, withoutFiles, "", strconv.FormatFloat(r.IdleAnonymousMiB, 'f', 0, 64))
	}
}

func writeBackstop(out *strings.Builder, rows []creation) {
	const header, line = "  %-44s %10s %8s %8s\n", "  %-44s %10.0f %8.1f %8.1f\n"
	fmt.Fprintf(out, "\nThe same pods with a policy that stands in for the webhook, which is not called, %d clients\n", creators)
	fmt.Fprintf(out, header, "", "creates/s", "p50 ms", "p99 ms")
	for _, row := range rows {
		fmt.Fprintf(out, line, row.Server, row.CreatesPerSecond, row.P50Millis, row.P99Millis)
	}
}

func writeFreshness(out *strings.Builder, rows []freshness) {
	const header, line = "  %-44s %10s %8s %8s\n", "  %-44s %10.0f %8.1f %8.1f\n"
	fmt.Fprintln(out, "\nThe same pods with each freshness of PodDefaults")
	fmt.Fprintf(out, header, "", "creates/s", "p50 ms", "p99 ms")
	for _, row := range rows {
		name := fmt.Sprintf("%s, %s PodDefaults, %d clients", row.Server, thousands(row.PodDefaults), row.Clients)
		fmt.Fprintf(out, line, name, row.CreatesPerSecond, row.P50Millis, row.P99Millis)
	}
}

func writeOverload(out *strings.Builder, rows []overload) {
	const header, line = "  %-44s %10s %8s %8s %10s\n", "  %-44s %10.0f %8.1f %8.1f %9.1f%%\n"
	fmt.Fprintf(out, "\nThe same pods at a rate, %d a second and more, with a webhook timeout of %d s\n", usualLoad, overloadTimeout)
	fmt.Fprintf(out, header, "", "creates/s", "p50 ms", "p99 ms", "refused")
	for _, row := range rows {
		fmt.Fprintf(out, line, fmt.Sprintf("%s, %d × the usual load", row.Server, row.Load), row.CreatesPerSecond, row.P50Millis, row.P99Millis, 100*float64(row.Refused)/float64(row.Pods))
		for _, reason := range row.Reasons {
			fmt.Fprintf(out, "    refused: %s\n", reason)
		}
	}
}

func writeListings(out *strings.Builder, rows []listing) {
	const header, line = "  %-44s %10s %8s %14s %8s\n", "  %-44s %10d %8.2f %14.1f %8.2f\n"
	fmt.Fprintln(out, "\nLIST of CronTabs that are stored in another version, no watch cache")
	fmt.Fprintf(out, header, "", "objects", "s", "CPU µs/object", "× floor")
	for _, row := range rows {
		fmt.Fprintf(out, line, row.Server, row.Objects, row.Seconds, row.CPUMicrosPerObject, row.RatioToFloor)
	}
}

func writeVerdicts(out *strings.Builder, verdicts []verdict, quick bool) {
	const header, line = "  %-44s %12s %8s %8s\n", "  %-44s %12s %8s %8s  %-16s %s\n"
	fmt.Fprintln(out, "\nMust reach")
	fmt.Fprintf(out, header, "", "measured", "at most", "aim")
	for _, v := range verdicts {
		measured, aim, outcome := "not measured", "", "FAIL"
		if v.Measured {
			measured = strconv.FormatFloat(v.Value, 'f', 2, 64)
		}
		if v.Aim > 0 {
			aim = number(v.Aim)
		}
		switch {
		case quick:
			outcome = "not judged"
		case v.Holds:
			outcome = "PASS"
		}
		fmt.Fprintf(out, line, v.Name, measured, number(v.AtMost), aim, v.Unit, outcome)
	}
	if quick {
		fmt.Fprintln(out, "  (A quick run, with fewer PodDefaults: its figures mean nothing.)")
	}
}

func number(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) }

// thousands writes 10000 as 10,000.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
