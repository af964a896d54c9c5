// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

// Values of the enums of the API.
const (
	pass  openreports.Result = "pass"
	fail  openreports.Result = "fail"
	warn  openreports.Result = "warn"
	fault openreports.Result = "error"
	skip  openreports.Result = "skip"

	high   openreports.ResultSeverity = "high"
	medium openreports.ResultSeverity = "medium"
	low    openreports.ResultSeverity = "low"
	info   openreports.ResultSeverity = "info"
)

// Rules of results. The policy of a result is the name of a PodDefault, or cluster/NAME
// for a ClusterPodDefault, as in metrics.
const (
	refusalRule  = "refusal"  // a workload whose pods are denied
	auditRule    = "audit"    // what an object in mode Audit would do to a workload
	conflictRule = "conflict" // a PodDefault with the condition Conflicting
	limitRule    = "limit"    // the number of results that are left out
)

const (
	reporter = "sallyport" // of all results, and the policy of limitRule
	category = "PodDefaults"
)

// Properties of results.
const (
	// dependsOnProperty lists the objects that a result depends on, with their generations:
	// "a@1,cluster/b@7".
	dependsOnProperty = "podDefaults"
	// Properties of the result of limitRule: how many findings and conflicts are left out.
	leftOutProperty          = "leftOut"
	leftOutConflictsProperty = "leftOutConflicts"
)

// A key identifies a result in a report.
type key struct{ policy, rule, kind, name string }

func keyOf(r *openreports.ReportResult) key {
	k := key{policy: r.Policy, rule: r.Rule}
	if len(r.Subjects) > 0 {
		k.kind, k.name = r.Subjects[0].Kind, r.Subjects[0].Name
	}
	return k
}

func timestamp(t time.Time) metav1.Timestamp { return metav1.Timestamp{Seconds: t.Unix()} }

func timeOf(r *openreports.ReportResult) time.Time { return time.Unix(r.Timestamp.Seconds, 0) }

// findingResult is the result for a finding about a workload.
func findingResult(namespace string, of meta.Workload, f *merge.Finding, now time.Time) openreports.ReportResult {
	r := openreports.ReportResult{
		Policy: f.Object.Decision(), Rule: auditRule, Category: category, Timestamp: timestamp(now), Description: control.Cut(f.Text),
		Subjects:   []corev1.ObjectReference{{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: namespace, Name: of.Name}},
		Properties: map[string]string{dependsOnProperty: f.DependsOn()},
	}
	switch f.Verdict {
	case merge.Refused:
		r.Rule, r.Result, r.Severity, r.Scored = refusalRule, fail, high, true
	case merge.WouldApply:
		r.Result, r.Severity, r.Scored = pass, info, true
	case merge.WouldNot:
		r.Result, r.Severity = warn, medium
	case merge.NotEvaluated:
		r.Result, r.Severity = fault, low
	}
	return r
}

// conflictResult is the result for a PodDefault with the condition Conflicting.
func conflictResult(c *plan.Plan, condition *metav1.Condition) openreports.ReportResult {
	is := c.Identity()
	return openreports.ReportResult{
		Policy: c.Decision(), Rule: conflictRule, Category: category, Result: warn, Severity: medium,
		Timestamp: timestamp(condition.LastTransitionTime.Time), Description: control.Cut(condition.Message),
		Subjects: []corev1.ObjectReference{{
			APIVersion: kubeflowv1alpha1.GroupVersion.String(), Kind: kubeflowv1alpha1.PodDefaultKind,
			Namespace: is.Namespace, Name: is.Name, UID: is.UID,
		}},
	}
}

// limitResult is the result that tells how many others are left out.
func limitResult(namespace string, findings, conflicts int, at time.Time) openreports.ReportResult {
	return openreports.ReportResult{
		Policy: reporter, Rule: limitRule, Category: category, Result: skip, Severity: info, Timestamp: timestamp(at),
		Description: fmt.Sprintf("%d results are left out: a report has the newest %d", findings+conflicts, maxResults),
		Subjects:    []corev1.ObjectReference{{APIVersion: "v1", Kind: "Namespace", Name: namespace}},
		Properties:  map[string]string{leftOutProperty: strconv.Itoa(findings), leftOutConflictsProperty: strconv.Itoa(conflicts)},
	}
}

// count reads a property. Anyone who may write reports may have written it.
func count(r *openreports.ReportResult, property string) int {
	n, err := strconv.Atoi(r.Properties[property])
	if err != nil {
		return 0
	}
	return min(max(n, 0), maxLeftOut)
}

// outdated reports whether an object that a result depends on is gone or has a newer
// generation. A result that names no object is outdated.
func outdated(r *openreports.ReportResult, generation func(decision string) (int64, bool)) bool {
	for one := range strings.SplitSeq(r.Properties[dependsOnProperty], ",") {
		decision, at, _ := strings.Cut(one, "@")
		then, err := strconv.ParseInt(at, 10, 64)
		now, there := generation(decision)
		if err != nil || !there || now > then {
			return true
		}
	}
	return false
}
