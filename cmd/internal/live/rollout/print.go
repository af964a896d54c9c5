// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"io"

	"github.com/aymanbagabas/go-udiff"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// PrintSpec prints the spec of a revision as YAML.
func PrintSpec(out io.Writer, one *revision.Record) error {
	text, err := yamlOf(one.Meaning)
	if err == nil {
		_, err = io.WriteString(out, manifest.Printable(text))
	}
	return err
}

// yamlOf returns the spec with a meaning as YAML.
func yamlOf(meaning []byte) (string, error) {
	text, err := yaml.JSONToYAML(fmt.Appendf(nil, `{"spec":%s}`, meaning))
	return string(text), err
}

// PrintDiff prints how the current revision differs from an earlier one, as a unified diff of YAML. It prints nothing
// if it does not.
func PrintDiff(out io.Writer, one *revision.Record, now *State) error {
	before, err := yamlOf(one.Meaning)
	if err != nil {
		return err
	}
	after, err := yamlOf(now.Spec)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, manifest.Printable(udiff.Unified("revision "+revision.Short(one.Name), "revision "+revision.Short(now.Revision), before, after)))
	return err
}
