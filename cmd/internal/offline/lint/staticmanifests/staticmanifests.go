// SPDX-License-Identifier: Apache-2.0

// Package staticmanifests checks what kube-apiserver requires of static admission manifests (KEP-5793):
// k8s.io/apiserver/pkg/admission/plugin/manifest, and policy/manifest/loader beside it.
package staticmanifests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
)

// Suffix ends the names of objects of static manifests, and of no others.
const Suffix = ".static.k8s.io"

// Object is an object of a file or a cluster.
type Object struct {
	Kind, Name string
	Raw        []byte
	File       string
	Line       int
	// Static is set for an object of a static manifest, InDirectory if its directory is one of those.
	Static, InDirectory bool
	// Ref is the caller's own.
	Ref any
}

// A Problem is about the value at a JSON pointer in an object.
type Problem struct {
	Object
	Pointer, Message string
}

// plugins are the admission plugins that read the kinds, each from a directory of its own.
var plugins = map[string]string{
	"MutatingWebhookConfiguration": "MutatingAdmissionWebhook", "ValidatingWebhookConfiguration": "ValidatingAdmissionWebhook",
	"MutatingAdmissionPolicy": "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding": "MutatingAdmissionPolicy",
	"ValidatingAdmissionPolicy": "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding": "ValidatingAdmissionPolicy",
}

type checking struct {
	objects  []Object
	release  release.Version
	problems []Problem
}

// Check returns the problems of all objects for a release.
func Check(objects []Object, of release.Version) []Problem {
	c := &checking{objects: slices.Clone(objects), release: of}
	slices.SortStableFunc(c.objects, func(a, b Object) int { return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line) })
	seen, first := map[string]Object{}, map[string]Object{}
	for _, o := range c.objects {
		switch plugin := plugins[o.Kind]; {
		case plugin == "" && o.InDirectory:
			c.add(o, "/kind", "%s %s is in a directory of static manifests, from which kube-apiserver reads only webhook configurations, policies and bindings", o.Kind, o.Name)
		case plugin == "":
		case !o.Static:
			if strings.HasSuffix(o.Name, Suffix) {
				c.add(o, "/metadata/name", "%s is registered through the API; names that end in %s are for static manifests", o.Name, Suffix)
			}
		default:
			if !strings.HasSuffix(o.Name, Suffix) {
				c.add(o, "/metadata/name", "static configuration %s must end with %s", o.Name, Suffix)
			}
			if other, ok := seen[o.Kind+"/"+o.Name]; ok {
				c.add(o, "/metadata/name", "name %s is already used in %s", o.Name, other.File)
			}
			seen[o.Kind+"/"+o.Name] = o
			other, ok := first[path.Dir(o.File)]
			if o.InDirectory && !ok {
				first[path.Dir(o.File)] = o
			} else if o.InDirectory && plugins[other.Kind] != plugin {
				c.add(o, "/kind", "%s is in the same directory as %s: the plugins %s and %s read one each", o.Kind, other.Kind, plugins[other.Kind], plugin)
			}
			c.policy(o)
		}
	}
	return c.problems
}

func (c *checking) add(o Object, pointer, format string, args ...any) {
	c.problems = append(c.problems, Problem{o, pointer, fmt.Sprintf(format, args...)})
}

// policy checks a policy or a binding.
func (c *checking) policy(o Object) {
	var content struct {
		Spec struct {
			ParamKind, ParamRef *struct{}
			PolicyName          string
		}
	}
	if !strings.Contains(o.Kind, "Policy") || json.Unmarshal(o.Raw, &content) != nil { // which another rule reports
		return
	}
	spec := content.Spec
	if spec.ParamKind != nil {
		c.add(o, "/spec/paramKind", "static policy %s must not have a paramKind", o.Name)
	}
	if spec.ParamRef != nil {
		c.add(o, "/spec/paramRef", "static binding %s must not have a paramRef", o.Name)
	}
	policy, binding := strings.CutSuffix(o.Kind, "Binding")
	if binding && !slices.ContainsFunc(c.objects, func(p Object) bool { return p.Kind == policy && p.Name == spec.PolicyName && p.Static }) {
		c.add(o, "/spec/policyName", "static binding %s names the policy %s, which no static manifest has", o.Name, spec.PolicyName)
	}
	if gate, lacks := c.release.Lacks(release.StaticPolicies); lacks && !binding {
		c.add(o, "", "Kubernetes %s has no %s without a feature gate; they are on by default since 1.%d", c.release, gate.What, gate.Since)
	}
}
