// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Options say how rules are run. The zero value runs all of them, now.
type Options struct {
	// Now is the time that certificates are judged at; the present one if zero.
	Now time.Time
	// Rules are IDs of the rules to run; empty for all.
	Rules []string
	// Ignore are findings that do not count, in addition to those that annotations of
	// the objects name.
	Ignore []Ignore
	// Paths are those by which the servers of known webhooks are called, by the webhook's name.
	// Paths of other webhooks are not judged.
	Paths map[string][]string
	// Resources are what webhooks can be for; nil if that is not known.
	Resources *Resources
	// Leaves are the certificates that servers show, with their chain, by the key that
	// [Inventory.Endpoints] has. A server that is not among them was not asked.
	Leaves map[string][]*x509.Certificate
}

// Run looks at the inventory with every rule.
func Run(in *Inventory, options Options) *Report {
	if options.Now.IsZero() {
		options.Now = time.Now()
	}
	report := &Report{Checked: maps.Clone(in.checked), Findings: []Finding{}, Skipped: slices.Clone(in.unread)}
	shared := &checker{Inventory: in, options: options, report: report, conditions: &conditions{reached: map[reachKey]bool{}}, skipped: map[[2]string]int{}}
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

// checker is what one rule works with.
type checker struct {
	*Inventory
	options    Options
	rule       *Rule
	report     *Report
	conditions *conditions
	fix        string            // of the findings, in place of the rule's; see [checker.fixing]
	skipped    map[[2]string]int // index in report.Skipped by rule and reason
}

// object reports a finding about what stands at the pointer in an object.
func (c *checker) object(o *Object, severity Severity, pointer, format string, args ...any) {
	c.find(o, "", severity, pointer, format, args...)
}

// webhook reports a finding about a field of an entry.
func (c *checker) webhook(w *webhook, severity Severity, field, format string, args ...any) {
	c.find(w.config.Object, w.Name, severity, w.pointer(field), format, args...)
}

// fixing is the checker for findings with another remedy than that of the rule.
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

// skip says that the rule could not look at something, and why.
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

// outOfSight says why an object of a kind is not there to look at.
func (c *checker) outOfSight(kind string) string {
	if c.cluster {
		return kind + "s could not be listed"
	}
	return "no such " + kind + " among the files"
}

// backendsOr are the servers that can be seen. For webhooks whose server cannot, it
// says so.
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

// seen says so if a Service, or what is behind it, was not read.
func (c *checker) seen(about, namespace, name string) {
	switch s := c.serviceOf(namespace, name); {
	case s == nil && c.complete["Service"]: // service-exists says so
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

// evaluate asks the conditions of a webhook about a request.
func (c *checker) evaluate(w *webhook, r Request) (verdict, string) {
	return c.conditions.all(context.Background(), w.MatchConditions, r, false)
}

// conditionsExclude tells whether the match conditions of a webhook are false for a
// request.
func (c *checker) conditionsExclude(w *webhook, r Request) bool {
	if len(w.MatchConditions) == 0 {
		return false
	}
	v, _ := c.evaluate(w, r)
	return v.err == nil && !v.matches
}
