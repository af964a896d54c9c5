// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// A Selection is what an object selects pods by.
type Selection struct {
	version    string          // see Version
	selector   labels.Selector // nil if invalid
	namespaces labels.Selector // for a ClusterPodDefault; nil selects all
	forms      string          // see UISelectable
	// namespaceSelector is the namespaces' as written.
	namespaceSelector *metav1.LabelSelector
}

// Selector selects pods. It is nil if invalid.
func (s *Selection) Selector() labels.Selector { return s.selector }

// NamespaceSelector selects the namespaces of a ClusterPodDefault. Nil selects all.
func (s *Selection) NamespaceSelector() labels.Selector { return s.namespaces }

// SelectsNamespace reports whether the object is for namespaces with these labels. A PodDefault is for its own.
func (s *Selection) SelectsNamespace(namespace labels.Set) bool {
	return s.namespaces == nil || s.namespaces.Matches(namespace)
}

// Version identifies the parts of an object that select pods. It changes with the
// selectors, and when the object is deleted and recreated.
func (s *Selection) Version() string { return s.version }

// UISelectable is empty if the forms of Kubeflow's web applications can offer the
// object, and otherwise the reason why not.
func (s *Selection) UISelectable() string { return s.forms }

// ownSelector copies a selector with its strings. One string of a decoded object keeps the memory of those beside it,
// which is 512 bytes: two fifths of what is otherwise kept of an object.
func ownSelector(s *metav1.LabelSelector) *metav1.LabelSelector {
	out := s.DeepCopy()
	if out == nil {
		return nil
	}
	clear(out.MatchLabels)
	for key, value := range s.MatchLabels {
		out.MatchLabels[strings.Clone(key)] = unique.Make(value).Value() // most are "true"
	}
	for i := range out.MatchExpressions {
		e := &out.MatchExpressions[i]
		e.Key, e.Operator = strings.Clone(e.Key), metav1.LabelSelectorOperator(strings.Clone(string(e.Operator)))
		for j, value := range e.Values {
			e.Values[j] = strings.Clone(value)
		}
	}
	return out
}

func versionOf(uid types.UID, selector, namespaces *metav1.LabelSelector) string {
	buffer := meta.Encoding.Get().(*[]byte)
	defer meta.Encoding.Put(buffer)
	encoded := append((*buffer)[:0], '[') //nolint:gocritic // the buffer is put back
	for i, part := range [...]any{uid, selector, namespaces} {
		if i > 0 {
			encoded = append(encoded, ',')
		}
		encoded, _ = jsonpatch.AppendValue(encoded, part) // maps are sorted
	}
	encoded = append(encoded, ']')
	*buffer = encoded
	sum := sha256.Sum256(encoded)
	var text [43]byte
	base64.RawURLEncoding.Encode(text[:], sum[:])
	return string(text[:6])
}
