// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// PrintYAML prints the objects as one stream, without fields that only the API server sets.
func PrintYAML(out io.Writer, objects []runtime.Object) error {
	for i, object := range objects {
		data, err := json.Marshal(object)
		if err != nil {
			return err
		}
		var tree map[string]any
		if err := yaml.Unmarshal(data, &tree); err != nil {
			return err
		}
		delete(tree, "status")
		text, err := yaml.Marshal(tree)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// ReadCABundle reads the CA bundle that a flag names, or returns nil if the flag is empty.
func ReadCABundle(flag, file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	caBundle, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	if len(caBundle) == 0 {
		return nil, fmt.Errorf("--%s: %s is empty; omit the flag if something else writes the caBundle", flag, file)
	}
	return caBundle, nil
}
