// SPDX-License-Identifier: Apache-2.0

// Package exempt knows which pods Exemptions exempt from PodDefaults, until when.
package exempt

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/store"
)

// allWorkloads is the workload of an exemption for every pod of the namespace.
const allWorkloads = "*"

// Limits of an exemption, as in its definition. The API server allows a policy 10,000,000
// units of cost and an expression 1,000,000, and the access review for an object costs
// 350,000: hence one validation for each object, and no more than 28 objects.
const (
	maxObjects   = 16
	maxWorkloads = 16
	maxReason    = 256 // characters
)

// An Exemption exempts pods of its namespace from objects until a time. It is immutable.
type Exemption struct {
	Namespace string    `json:"-"`
	Name      string    `json:"name"`
	Until     time.Time `json:"until"`
	// Objects are named as in [meta.DecisionsAnnotation].
	Objects []string `json:"podDefaults"`
	// Workloads are "*", or kinds and names of controllers of pods, or of the Deployment,
	// CronJob or Notebook above these: "Deployment/web".
	Workloads []string `json:"workloads"`
	Reason    string   `json:"reason"`

	units []string // Workloads as [meta.WorkloadOf] names them; none if there is a problem
}

// New returns the exemption of an object. The error reports all problems, without values:
// those that its definition refuses. The exemption then exempts nothing.
func New(from *sallyportv1alpha1.Exemption) (*Exemption, error) {
	e := &Exemption{
		Namespace: from.Namespace, Name: from.Name, Until: from.Spec.Until.Time,
		Objects: slices.Clone(from.Spec.PodDefaults), Workloads: slices.Clone(from.Spec.Workloads), Reason: from.Spec.Reason,
	}
	var errs []error
	report := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if e.Until.IsZero() {
		report("spec.until is missing: give a time as in RFC 3339, such as 2006-01-02T15:04:05Z")
	}
	if n := len(e.Objects); n == 0 || n > maxObjects {
		report("spec.podDefaults must have 1 to %d names", maxObjects)
	}
	for i, name := range e.Objects {
		if len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, meta.ClusterDecision))) > 0 {
			report("spec.podDefaults[%d] must be the name of a PodDefault, or cluster/NAME for a ClusterPodDefault", i)
		} else if slices.Contains(e.Objects[:i], name) {
			report("spec.podDefaults[%d] is there twice", i)
		}
	}
	if n := len(e.Workloads); n == 0 || n > maxWorkloads {
		report("spec.workloads must have 1 to %d workloads; * is every workload", maxWorkloads)
	}
	units := make([]string, len(e.Workloads))
	for i, workload := range e.Workloads {
		var err error
		if units[i], err = unitOf(workload); err != nil {
			report("spec.workloads[%d] %w", i, err)
		}
	}
	if slices.Contains(e.Workloads, allWorkloads) && len(e.Workloads) > 1 {
		report("spec.workloads: * is every workload and must be alone")
	}
	if r := e.Reason; strings.TrimSpace(r) == "" || !utf8.ValidString(r) || utf8.RuneCountInString(r) > maxReason || strings.ContainsFunc(r, func(r rune) bool { return !unicode.IsPrint(r) }) {
		report("spec.reason must be printable text of at most %d characters", maxReason)
	}
	if len(errs) > 0 {
		return e, errors.Join(errs...)
	}
	e.units = units
	return e, nil
}

// controllers are the kinds whose objects create the pods of others, with the same name or
// one that begins with it.
var controllers = map[string]string{"Deployment": "ReplicaSet", "CronJob": "Job", "Notebook": "StatefulSet"}

// unitOf returns the workload of an exemption as [meta.WorkloadOf] names it.
func unitOf(text string) (string, error) {
	if text == allWorkloads {
		return text, nil
	}
	kind, name, _ := strings.Cut(text, "/")
	// Definitions of resources have the same rule for kinds.
	if len(validation.IsDNS1035Label(strings.ToLower(kind))) > 0 || !unicode.IsUpper(rune(kind[0])) || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "", errors.New("must be * or KIND/NAME, such as Deployment/web")
	}
	if by, ok := controllers[kind]; ok {
		kind = by
	}
	return meta.WorkloadBy(meta.Workload{Kind: kind, Name: name}, "", "").Unit, nil
}

// Wider returns the objects from which e exempts more than before does, which may be nil:
// until later, more workloads, or for another reason.
func (e *Exemption) Wider(before *Exemption) []string {
	if before == nil || e.Until.After(before.Until) || e.Reason != before.Reason ||
		!slices.Contains(before.Workloads, allWorkloads) && slices.ContainsFunc(e.Workloads, func(w string) bool { return !slices.Contains(before.Workloads, w) }) {
		return e.Objects
	}
	return slices.DeleteFunc(slices.Clone(e.Objects), func(name string) bool { return slices.Contains(before.Objects, name) })
}

// From returns the exemption of a workload, as [meta.WorkloadOf] names it, from an
// object, named as in [meta.DecisionsAnnotation], that ends last, or nil.
func From(decision string, list []*Exemption, now time.Time, workload string) (by *Exemption) {
	for _, e := range list {
		if now.Before(e.Until) && (by == nil || by.Until.Before(e.Until)) && slices.Contains(e.Objects, decision) &&
			(slices.Contains(e.units, allWorkloads) || slices.Contains(e.units, workload)) {
			by = e
		}
	}
	return by
}

// Compare orders exemptions of a namespace by their end, and then by name.
func Compare(a, b *Exemption) int {
	return cmp.Or(a.Until.Compare(b.Until), strings.Compare(a.Name, b.Name))
}

// A Record is an Exemption as a server keeps it.
type Record struct {
	*Exemption
	// Problem is why it exempts from nothing; nil for none.
	Problem    error
	Generation int64
	Status     *sallyportv1alpha1.ExemptionStatus

	identity store.Identity
}

// Identity implements [store.Object].
func (r *Record) Identity() store.Identity { return r.identity }

// Keep is the record of an object, of which it retains nothing.
func Keep(from *sallyportv1alpha1.Exemption) *Record {
	e, err := New(from)
	identity := store.Identity{UID: from.UID, ResourceVersion: from.ResourceVersion}
	identity.Namespace, identity.Name = from.Namespace, from.Name
	return &Record{Exemption: e, Problem: err, Generation: from.Generation, Status: from.Status.DeepCopy(), identity: identity}
}
