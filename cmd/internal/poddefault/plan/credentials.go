// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// Names of fields with which a spec refers to what only some may use contain one of these.
var credentialNames = []string{"ecret", "onfigMap", "erviceAccount"}

// freeNames are fields whose members the author names.
var freeNames = []string{
	"labels", "annotations", "nodeSelector", "matchLabels", "selector", "podSelector", "namespaceSelector", "rollout",
	"volumeAttributes", "options", "limits", "requests",
}

// bringsCredentials reports whether a spec refers to Secrets, ConfigMaps or a ServiceAccount
// anywhere: by name or by labels, in its containers and volumes too. It goes by the names of
// fields, so that fields of later versions of Kubernetes count.
func bringsCredentials(spec jsontext.Value) bool {
	if !slices.ContainsFunc(credentialNames, func(part string) bool { return bytes.Contains(spec, []byte(part)) }) {
		return false
	}
	found := false
	r := rawjson.NewReader(spec)
	walkFields(&r, func(name string) bool {
		found = found || name != AutomountField && slices.ContainsFunc(credentialNames, func(part string) bool { return strings.Contains(name, part) })
		return !found && !slices.Contains(freeNames, name)
	})
	return found
}

// walkFields calls visit with the names of fields at any depth. Visit reports whether to look
// below the field.
func walkFields(r *rawjson.Reader, visit func(name string) bool) {
	switch r.Kind() {
	case '{':
		r.Object(func(name []byte) {
			if visit(string(name)) {
				walkFields(r, visit)
			}
		})
	case '[':
		r.Array(func(int) { walkFields(r, visit) })
	default:
		r.Skip()
	}
}
