// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
)

// A revision is what an object means for pods: its spec without the fields that only
// people and the controller read. Its name is a hash of that.

// notMeant are the fields of a spec that are not part of a revision.
var notMeant = []string{"desc", "revisionHistoryLimit", "rollout"}

// RevisionSize is the length of the name of a revision.
const RevisionSize = revision.Size

// Meaning returns the part of a PodDefault's spec that a revision has, as canonical JSON
// (RFC 8785, with exact integers). It depends neither on the order of fields nor on empty
// ones nor on those with the schema's default.
func Meaning(spec *kubeflowv1alpha1.PodDefaultSpec) []byte {
	return meaning(meta.EncodedSpec(spec), nil, false)
}

// ClusterMeaning is [Meaning] for a ClusterPodDefault.
func ClusterMeaning(spec *sallyportv1alpha1.ClusterPodDefaultSpec) []byte {
	return meaning(meta.EncodedSpec(&spec.PodDefaultSpec), spec.NamespaceSelector, spec.AllowExclude)
}

// RevisionOf returns the name of the revision with this meaning.
func RevisionOf(meaning []byte) string { return revision.NameOf(meaning) }

// meaning takes an encoded PodDefaultSpec.
func meaning(spec jsontext.Value, namespaces *metav1.LabelSelector, allowExclude bool) jsontext.Value {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(spec, &members); err != nil { // encoded by this program
		return spec
	}
	meta.DropDefaults(members)
	for name, value := range members {
		switch {
		case slices.Contains(notMeant, name), name != "selector" && string(value) == "{}":
			delete(members, name)
		}
	}
	if namespaces != nil && len(namespaces.MatchLabels)+len(namespaces.MatchExpressions) > 0 {
		members["namespaceSelector"] = Encode(namespaces)
	}
	if allowExclude {
		members["allowExclude"] = jsontext.Value("true")
	}
	out, err := json.Marshal(members)
	if err != nil { // it was valid JSON
		return spec
	}
	if canonical := revision.Canonical(withoutEmpty(out)); canonical != nil {
		return canonical
	}
	return out
}

// Meaning is what the object's revision has; see [Meaning].
func (c *Plan) Meaning() []byte {
	return meaning(c.packed, c.namespaceSelector, c.Cluster() && c.allowExclude)
}

// zeroDivisor is the divisor of a resourceFieldRef, behind the field that comes before it. In a
// map, whose keys are sorted, a member divisor never comes behind a member resource.
var zeroDivisor = regexp.MustCompile(`("resource":"(?:[^"\\]|\\.)*"),"divisor":"0"`)

// withoutEmpty removes the empty values that encoding/json cannot omit. Quotes in JSON
// strings are escaped, so these only match members; and no map has an object as a value.
func withoutEmpty(value []byte) []byte {
	value = bytes.ReplaceAll(value, []byte(`,"resources":{}`), nil)
	if bytes.Contains(value, []byte(`"divisor"`)) {
		value = zeroDivisor.ReplaceAll(value, []byte("$1"))
	}
	return value
}

// Wrote reports whether a mark is of this state of the object: of its revision, or of its
// resourceVersion if the pod records no revision.
func (c *Plan) Wrote(mark meta.CarriedMark) bool { return c.WroteAs(mark.Value, mark.Revision) }

// WroteAs is [Plan.Wrote] for a resourceVersion and a revision, which may be empty.
func (c *Plan) WroteAs(resourceVersion, revision string) bool {
	if revision == "" {
		// The stable revision of a rollout has the object's resourceVersion, and is not of it.
		return resourceVersion == c.ResourceVersion && (c.Rollout == nil || c.Rollout.Current.revision == c.revision)
	}
	return revision == c.revision
}
