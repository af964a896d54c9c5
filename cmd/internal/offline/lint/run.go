// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/policyrules"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
)

// Options configure a run. The zero value runs all rules with the current time.
type Options struct {
	// Now is the time for checking certificates; the current time if zero.
	Now time.Time
	// Rules are IDs of the rules to run; empty for all.
	Rules []string
	// Ignore are findings to ignore, in addition to annotations of the objects.
	Ignore []Ignore
	// Paths are the valid paths of known webhooks by name. Other webhooks' paths are
	// not checked.
	Paths map[string][]string
	// Resources are the resources of the API server; nil if unknown.
	Resources *Resources
	// PodDefault returns why the definition and the webhook of this version refuse a PodDefault or
	// ClusterPodDefault, without values of its fields. If it is nil, none is judged, nor read from a
	// cluster.
	PodDefault func(*Object) field.ErrorList
	// Release is the cluster's, if it is known.
	Release release.Version
	// Leaves are the certificate chains that servers present, by the keys of
	// [Inventory.Endpoints]. Missing servers were not contacted.
	Leaves map[string][]*x509.Certificate
}

// Run checks the inventory with all selected rules.
func Run(in *Inventory, options Options) *Report {
	if options.Now.IsZero() {
		options.Now = time.Now()
	}
	report := &Report{Checked: maps.Clone(in.checked), Findings: []Finding{}, Skipped: slices.Clone(in.unread)}
	shared := &checker{Inventory: in, options: options, report: report, reached: map[reachKey]bool{}, skipped: map[[2]string]int{}}
	shared.policySet = sync.OnceValue(shared.policiesForRules)
	for _, rule := range Rules() {
		if len(options.Rules) > 0 && !slices.Contains(options.Rules, rule.ID) {
			continue
		}
		c := *shared
		c.rule = &rule
		rule.check(&c)
	}
	report.sort()
	return report
}

// checker is the environment of one rule.
type checker struct {
	*Inventory
	options   Options
	rule      *Rule
	report    *Report
	reached   map[reachKey]bool
	fix       string            // overrides the rule's fix; see [checker.fixing]
	skipped   map[[2]string]int // index in report.Skipped by rule and reason
	policySet func() *policyrules.Set
}

// object reports a finding about the value at a pointer in an object.
func (c *checker) object(o *Object, severity Severity, pointer, format string, args ...any) {
	c.find(o, "", severity, pointer, format, args...)
}

// webhook reports a finding about a field of an entry.
func (c *checker) webhook(w *webhook, severity Severity, field, format string, args ...any) {
	c.find(w.config.Object, w.Name, severity, w.pointer(field), format, args...)
}

// fixing returns a checker for findings with a different fix than the rule's.
func (c *checker) fixing(fix string) *checker {
	other := *c
	other.fix = fix
	return &other
}

func (c *checker) find(o *Object, webhook string, severity Severity, pointer, format string, args ...any) {
	f := Finding{
		Rule: c.rule.ID, Severity: severity, Object: o.title(), Webhook: webhook,
		Message: fmt.Sprintf(format, args...), Fix: cmp.Or(c.fix, c.rule.Fix),
	}
	f.File, f.Line = o.at(pointer)
	if f.Ignored = c.ignored(o, webhook); f.Ignored != "" {
		c.report.Ignored = append(c.report.Ignored, f)
		return
	}
	c.report.Findings = append(c.report.Findings, f)
}

// skip reports something that the rule could not check, and why.
func (c *checker) skip(about, format string, args ...any) {
	key := [2]string{c.rule.ID, fmt.Sprintf(format, args...)}
	i, ok := c.skipped[key]
	if !ok {
		i = len(c.report.Skipped)
		c.skipped[key] = i
		c.report.Skipped = append(c.report.Skipped, Skipped{Rule: c.rule.ID, Reason: key[1]})
	}
	if about != "" {
		c.report.Skipped[i].Objects = append(c.report.Skipped[i].Objects, about)
	}
}

// outOfSight returns why objects of a kind are missing.
func (c *checker) outOfSight(kind string) string {
	if c.cluster {
		return kind + "s could not be listed"
	}
	return "no such " + kind + " among the files"
}

// backendsOr returns the known servers, and reports webhooks without one as skipped.
func (c *checker) backendsOr() []*backend {
	for _, w := range c.webhooks {
		if s := w.ClientConfig.Service; s != nil {
			c.seen(w.title(), s.Namespace, s.Name)
		} else if w.ClientConfig.URL != nil {
			c.skip(w.title(), "the server is reached by a URL: its workload is not known")
		}
	}
	return c.backends()
}

// seen reports a skip if a Service, or its backend, was not read.
func (c *checker) seen(about, namespace, name string) {
	switch s := c.serviceOf(namespace, name); {
	case s == nil && c.complete["Service"]: // reported by service-exists
	case s == nil:
		c.skip(about, "%s", c.outOfSight("Service"))
	case len(s.value.Spec.Selector) == 0:
		c.skip(about, "the Service selects no pods")
	case len(c.behind(s)) == 0:
		if c.complete["Deployment"] && c.complete["StatefulSet"] && c.complete["DaemonSet"] {
			c.skip(about, "no Deployment, StatefulSet or DaemonSet makes the pods of its Service")
		} else {
			c.skip(about, "%s", c.outOfSight("Deployment"))
		}
	}
}

// conditionsExclude reports whether a webhook's match conditions are false for a
// request.
func (c *checker) conditionsExclude(w *webhook, r matcher.Request) bool {
	if len(w.MatchConditions) == 0 {
		return false
	}
	matches, _, err := c.conditions.All(context.Background(), w.MatchConditions, r)
	return err == nil && !matches
}
