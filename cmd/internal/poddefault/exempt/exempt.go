// SPDX-License-Identifier: Apache-2.0

// Package exempt reads the annotation of namespaces that exempts pods from PodDefaults for a time.
package exempt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// ExemptAnnotation of a namespace exempts pods from objects until a time. See
// [ParseExemptions].
const ExemptAnnotation = "sallyport.io/exempt"

// allWorkloads is the workload of an exemption for every pod of the namespace.
const allWorkloads = "*"

// Limits of a value of [ExemptAnnotation]. Each object costs its author an access review.
const (
	maxExemptions  = 64 // objects, counted once a line
	maxReasonBytes = 256
)

// An Exemption exempts pods of a namespace from objects until a time.
type Exemption struct {
	Until time.Time `json:"until"`
	// Objects are named as in [meta.DecisionsAnnotation].
	Objects []string `json:"podDefaults"`
	// Workload is "*", or the kind and name of a pod's controller, or of the
	// Deployment, CronJob or Notebook above it: "Deployment/web".
	Workload string `json:"workload"`
	Reason   string `json:"reason"`

	unit string // Workload as [meta.WorkloadOf] names it
}

// ParseExemptions reads a value of [ExemptAnnotation]. Each line that is not blank is one
// exemption, with four fields separated by spaces:
//
//	UNTIL OBJECTS WORKLOAD REASON
//
// Until is a time as in RFC 3339. Objects are names of PodDefaults, and cluster/NAME for
// ClusterPodDefaults, separated by commas. Workload is "*" or KIND/NAME. The reason is the
// rest of the line. The error reports all problems by line, without values; nothing is
// exempt then.
func ParseExemptions(value string) ([]Exemption, error) {
	var out []Exemption
	var errs []error
	objects, number := 0, 0
	for line := range strings.Lines(value) {
		number++
		if strings.TrimSpace(line) == "" {
			continue
		}
		e, err := parseExemption(strings.Fields(line))
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", number, err))
		}
		out = append(out, e)
		if objects += max(1, len(e.Objects)); objects > maxExemptions {
			return nil, errors.Join(append(errs, fmt.Errorf("line %d: there are more than %d PodDefaults, counted once a line", number, maxExemptions))...)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

func parseExemption(fields []string) (Exemption, error) {
	if len(fields) < 4 {
		return Exemption{}, errors.New("it needs UNTIL OBJECTS WORKLOAD REASON, separated by spaces; * is every workload")
	}
	e := Exemption{Objects: strings.Split(fields[1], ","), Workload: fields[2], Reason: strings.Join(fields[3:], " ")}
	var errs []error
	var err error
	if e.Until, err = time.Parse(time.RFC3339, fields[0]); err != nil {
		errs = append(errs, errors.New("UNTIL must be a time as in RFC 3339, such as 2006-01-02T15:04:05Z"))
	}
	for i, name := range e.Objects {
		if len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, meta.ClusterDecision))) > 0 {
			errs = append(errs, errors.New("OBJECTS must be names of PodDefaults, and cluster/NAME for ClusterPodDefaults, separated by commas"))
			break
		}
		if slices.Contains(e.Objects[:i], name) {
			errs = append(errs, fmt.Errorf("OBJECTS has %s twice", name))
		}
	}
	if e.unit, err = unitOf(e.Workload); err != nil {
		errs = append(errs, err)
	}
	if len(e.Reason) > maxReasonBytes || strings.ContainsFunc(e.Reason, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		errs = append(errs, fmt.Errorf("REASON must be printable text of at most %d bytes", maxReasonBytes))
	}
	return e, errors.Join(errs...)
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
		return "", errors.New("WORKLOAD must be * or KIND/NAME, such as Deployment/web")
	}
	if by, ok := controllers[kind]; ok {
		kind = by
	}
	return meta.WorkloadBy(meta.Workload{Kind: kind, Name: name}, "", "").Unit, nil
}

// Covers reports whether e exempts at least what other does, for the same reason, from one
// of its objects.
func (e *Exemption) Covers(other *Exemption, object string) bool {
	return !e.Until.Before(other.Until) && e.Reason == other.Reason && slices.Contains(e.Objects, object) &&
		(e.unit == allWorkloads || e.unit == other.unit)
}

// ExemptionFrom returns the exemption of a workload, as [meta.WorkloadOf] names it, from an
// object, named as in [meta.DecisionsAnnotation], that ends last, or nil.
func ExemptionFrom(decision string, list []Exemption, now time.Time, workload string) (by *Exemption) {
	for i := range list {
		e := &list[i]
		if now.Before(e.Until) && (by == nil || by.Until.Before(e.Until)) && (e.unit == allWorkloads || e.unit == workload) && slices.Contains(e.Objects, decision) {
			by = e
		}
	}
	return by
}
