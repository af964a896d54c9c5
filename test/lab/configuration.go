// SPDX-License-Identifier: Apache-2.0

// Package lab starts what tests and programs below test/ need: commands of this repository,
// servers, what plays the rest of a cluster.
package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// setting begins an argument that is a field of the configuration.
const setting = "config:"

// Set is an argument for [Arguments]: a field of the configuration file by its path, such as
// serving.drainMin, and its value in YAML. The settings of a webhook are webhooks.NAME.FIELD.
func Set(field, value string) string { return setting + field + "=" + value }

// Arguments are those of serve: what [Set] has made becomes a file in the folder, or goes into
// the one that --config names, where that does not say otherwise. The last one of a field
// counts. Settings of a webhook are left out where the file does not list it.
func Arguments(folder string, args ...string) ([]string, error) {
	var flags []string
	own := map[string]any{}
	for _, arg := range args {
		text, ok := strings.CutPrefix(arg, setting)
		if !ok {
			flags = append(flags, arg)
			continue
		}
		field, text, _ := strings.Cut(text, "=")
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return nil, fmt.Errorf("%s: %w", arg, err)
		}
		into := own
		path := strings.Split(field, ".")
		for _, name := range path[:len(path)-1] {
			below, ok := into[name].(map[string]any)
			if !ok {
				below = map[string]any{}
				into[name] = below
			}
			into = below
		}
		into[path[len(path)-1]] = value
	}
	if len(own) == 0 {
		return flags, nil
	}
	path, given := filepath.Join(folder, "sallyport.yaml"), ""
	for i, flag := range flags {
		if value, ok := strings.CutPrefix(flag, "--config="); ok {
			given = value
		} else if flag == "--config" && i+1 < len(flags) {
			given = flags[i+1]
		}
	}
	file := map[string]any{"apiVersion": "config.sallyport.io/v1alpha1", "kind": "SallyportConfiguration"}
	if given != "" {
		path = given
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(data, &file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	} else {
		flags = append(flags, "--config", path)
	}
	settings, _ := own["webhooks"].(map[string]any)
	delete(own, "webhooks")
	if listed, ok := file["webhooks"].([]any); ok {
		for _, entry := range listed {
			entry := entry.(map[string]any)
			if more, ok := settings[fmt.Sprint(entry["name"])].(map[string]any); ok {
				merge(entry, map[string]any{"settings": more})
			}
		}
	} else if len(settings) > 0 {
		var entries []any
		for name, more := range settings {
			entries = append(entries, map[string]any{"name": name, "settings": more})
		}
		file["webhooks"] = entries
	}
	merge(file, own)
	data, err := yaml.Marshal(file)
	if err != nil {
		return nil, err
	}
	return flags, os.WriteFile(path, data, 0o600)
}

// merge adds what is not there.
func merge(into, more map[string]any) {
	for name, value := range more {
		below, isMap := value.(map[string]any)
		there, has := into[name].(map[string]any)
		switch _, said := into[name]; {
		case isMap && has:
			merge(there, below)
		case !said:
			into[name] = value
		}
	}
}
