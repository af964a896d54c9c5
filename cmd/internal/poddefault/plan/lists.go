// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A ListKind defines the key of the elements of one of the pod's lists, and when an
// existing element satisfies a PodDefault. The keys are those by which Kubernetes
// merges the lists (k8s.io/api/core/v1, patchMergeKey).
type ListKind struct {
	Name string // of an element, for messages
	// The key is the text of this member, or the result of key.
	member string
	key    func(element jsontext.Value) []byte
	// differences returns the fields in which have does not satisfy want.
	differences func(want, have jsontext.Value) []string
}

// The lists that most PodDefaults add to.
var (
	EnvKind        = &ListKind{Name: "env", member: "name", differences: exactly[corev1.EnvVar](dropEnvDefaults)}
	EnvFromKind    = &ListKind{Name: "envFrom", key: EnvFromKey, differences: never} // equal keys mean equal elements
	MountKind      = &ListKind{Name: "volumeMount", member: "mountPath", differences: exactly[corev1.VolumeMount](dropMountDefaults)}
	VolumeKind     = &ListKind{Name: "volume", member: "name", differences: volumeDifferences}
	TolerationKind = &ListKind{Name: "toleration", key: tolerationKey, differences: secondsDifference} // all other fields are in the key
	PullSecretKind = &ListKind{Name: "imagePullSecret", member: "name", differences: never}
	ContainerKind  = &ListKind{Name: "container", member: "name", differences: Subset}
)

// keyOf returns the key of an element.
func (k *ListKind) keyOf(value jsontext.Value) []byte {
	r := rawjson.NewReader(value)
	key, _ := k.Read(&r)
	return key
}

// Read skips an element and returns its key and the key's offset, or -1 if the key is
// not contiguous in the input.
func (k *ListKind) Read(r *rawjson.Reader) (key []byte, at int) {
	if k.member != "" {
		return r.MemberText(k.member)
	}
	return k.key(r.Value()), -1
}

// Compare is differences within bounds. Most existing elements were added by an earlier
// call and come back unchanged.
func (k *ListKind) Compare(b *meta.Budget, want, have jsontext.Value) []string {
	if bytes.Equal(want, have) {
		b.Scans(len(want))
		return nil
	}
	if !b.Compares(want, have) {
		return nil
	}
	return k.differences(want, have)
}

// MemberText returns the text of an element's member, or nil.
func MemberText(name string) func(jsontext.Value) []byte {
	return func(element jsontext.Value) []byte {
		r := rawjson.NewReader(element)
		text, _ := r.MemberText(name)
		return text
	}
}

// EnvFromKey identifies a source by all its fields: prefix, the names of both sources,
// and optional. Kubernetes accepts an optional and a required source next to each
// other, with the effect of the latter. The list is atomic in Kubernetes.
func EnvFromKey(element jsontext.Value) []byte {
	var prefix, configMap, secret []byte
	optional := false
	name := func(source jsontext.Value) []byte {
		optional = optional || string(Member(source, "optional")) == "true"
		return MemberText("name")(source)
	}
	r := rawjson.NewReader(element)
	r.Object(func(member []byte) {
		switch string(member) {
		case "prefix":
			prefix, _ = r.String()
		case "configMapRef":
			configMap = name(r.Value())
		case "secretRef":
			secret = name(r.Value())
		}
	})
	var key []byte
	for _, part := range []struct {
		name  string
		value []byte
	}{{"prefix ", prefix}, {"configMap ", configMap}, {"secret ", secret}} {
		if len(part.value) == 0 {
			continue
		}
		if key != nil {
			key = append(key, ", "...)
		}
		key = append(append(key, part.name...), part.value...)
	}
	if optional {
		key = append(key, ", optional"...)
	}
	return key
}

// tolerationKey identifies a toleration as core/v1's MatchToleration does: by
// everything but its tolerationSeconds.
func tolerationKey(element jsontext.Value) []byte {
	var key, operator, value, effect string
	r := rawjson.NewReader(element)
	r.Object(func(member []byte) {
		var to *string
		switch string(member) {
		case "key":
			to = &key
		case "operator":
			to = &operator
		case "value":
			to = &value
		case "effect":
			to = &effect
		default:
			return
		}
		text, _ := r.String()
		*to = string(text)
	})
	if operator == "" {
		operator = "Equal"
	}
	if value != "" {
		operator += " " + value
	}
	return []byte(strings.TrimPrefix(key+" "+operator+":"+effect, " "))
}

func secondsDifference(want, have jsontext.Value) []string {
	if string(Member(want, "tolerationSeconds")) == string(Member(have, "tolerationSeconds")) {
		return nil
	}
	return []string{"tolerationSeconds"}
}

// Lists that every object has. Lists of fields are identified by pointers, which begin with
// a slash.
const (
	EnvList            = "env"
	EnvFromList        = "envFrom"
	MountList          = "volumeMounts"
	VolumeList         = "volumes"
	TolerationList     = "tolerations"
	PullSecretList     = "imagePullSecrets"
	InitContainersList = "initContainers"
	ContainersList     = "containers"
)

// Other places that objects set.
const (
	AnnotationsMap  = "metadata.annotations"
	PodValues       = "spec"
	ContainerValues = "spec.containers"
)

// Member returns a member of an object, or nil.
func Member(object jsontext.Value, name string) jsontext.Value {
	value, _ := rawjson.Lookup(object, name)
	return value
}
