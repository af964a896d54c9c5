// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"cmp"
	"slices"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// Limits of a report.
const (
	// maxResults limits the results of a report: with the longest messages it has about
	// 400 KiB, and etcd stores 1.5 MiB.
	maxResults = 200
	// maxConflicts limits those of them that are about conflicts, which do not age.
	maxConflicts = 100
	// maxLeftOut limits the count of results that are left out.
	maxLeftOut = 1_000_000_000
	// retention is how long a finding stays after it was last seen.
	retention = 24 * time.Hour
	// refresh is how old a finding in a report may get before it is written again because
	// it was seen again. It also limits by how much clocks of replicas may differ.
	refresh = time.Hour
)

// found is what one replica found in a namespace since its last write.
type found struct {
	results []openreports.ReportResult
	leftOut int // findings that it had no room for
}

// state is what only the leader knows about a namespace.
type state struct {
	conflicts []openreports.ReportResult // by policy
	// generation returns the current generation of an object by its name in results.
	generation func(decision string) (int64, bool)
}

// compose returns the results that a report should have, newest first, given those that it
// has. Each replica adds what it found; the leader, for which known is not nil, also
// removes what does not hold any more. Without changes it returns the results as they are.
func compose(namespace string, have []openreports.ReportResult, add found, known *state, now time.Time) []openreports.ReportResult {
	findings := make(map[key]openreports.ReportResult, len(have)+len(add.results))
	var conflicts []openreports.ReportResult
	leftOut, leftOutConflicts, leftOutAt := add.leftOut, 0, now
	for i := range have {
		switch r := &have[i]; {
		case r.Rule == conflictRule:
			conflicts = append(conflicts, *r)
		case r.Rule == limitRule:
			leftOutConflicts = count(r, leftOutConflictsProperty)
			if known == nil || !expired(r, now) {
				leftOut += count(r, leftOutProperty)
			}
			if add.leftOut == 0 {
				leftOutAt = timeOf(r)
			}
		case known != nil && (expired(r, now) || outdated(r, known.generation)):
		default:
			if before, there := findings[keyOf(r)]; !there || before.Timestamp.Seconds < r.Timestamp.Seconds {
				findings[keyOf(r)] = *r
			}
		}
	}
	for i := range add.results {
		r := &add.results[i]
		if known != nil && outdated(r, known.generation) {
			continue
		}
		if before, there := findings[keyOf(r)]; !there || supersedes(r, &before) {
			findings[keyOf(r)] = *r
		}
	}
	if known != nil {
		conflicts = known.conflicts
		leftOutConflicts = max(0, len(conflicts)-maxConflicts)
	}
	conflicts = conflicts[:min(len(conflicts), maxConflicts)]
	out := make([]openreports.ReportResult, 0, len(findings))
	for _, r := range findings {
		out = append(out, r)
	}
	slices.SortFunc(out, newestFirst)
	if room := maxResults - 1 - len(conflicts); len(out) > room {
		leftOut += len(out) - room
		leftOutAt = now
		out = out[:room]
	}
	out = append(out, conflicts...)
	slices.SortStableFunc(out, newestFirst)
	if leftOut = min(leftOut, maxLeftOut); leftOut+leftOutConflicts > 0 {
		out = append(out, limitResult(namespace, leftOut, leftOutConflicts, leftOutAt))
	}
	return out
}

// supersedes reports whether a report should have this result instead of the one before.
func supersedes(r, before *openreports.ReportResult) bool {
	newer := timeOf(r).Sub(timeOf(before))
	return newer >= refresh || newer >= 0 && saysOf(r) != saysOf(before)
}

func expired(r *openreports.ReportResult, now time.Time) bool {
	age := now.Sub(timeOf(r))
	return age >= retention || age < -refresh
}

// expiry returns when the first finding expires, including those that other replicas may
// add.
func expiry(results []openreports.ReportResult, now time.Time) time.Time {
	first := now.Add(retention)
	for i := range results {
		if at := timeOf(&results[i]).Add(retention); results[i].Rule != conflictRule && at.Before(first) {
			first = at
		}
	}
	return first
}

func newestFirst(a, b openreports.ReportResult) int {
	x, y := keyOf(&a), keyOf(&b)
	return cmp.Or(cmp.Compare(b.Timestamp.Seconds, a.Timestamp.Seconds),
		cmp.Compare(x.policy, y.policy), cmp.Compare(x.rule, y.rule), cmp.Compare(x.kind, y.kind), cmp.Compare(x.name, y.name))
}

// fill gives a report these results, and all else that it has.
func fill(report *openreports.Report, namespace string, results []openreports.ReportResult) {
	report.Namespace, report.Name = namespace, ReportName
	if report.Labels == nil {
		report.Labels = map[string]string{}
	}
	report.Labels[managedByLabel] = managedBy
	report.Source, report.Results = reporter, results
	report.Scope = &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace}
	report.ScopeSelector = nil
	report.Configuration = &openreports.ReportConfiguration{Limits: openreports.Limits{MaxResults: maxResults}}
	report.Summary = openreports.ReportSummary{}
	for i := range results {
		switch results[i].Result {
		case pass:
			report.Summary.Pass++
		case fail:
			report.Summary.Fail++
		case warn:
			report.Summary.Warn++
		case fault:
			report.Summary.Error++
		case skip:
			report.Summary.Skip++
		}
	}
}
