// SPDX-License-Identifier: Apache-2.0

package staticmanifests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sallyport-io/sallyport/internal/registration"
)

// Remove removes the files that a [Files] of that name wrote below the
// directory, if their objects have [registration.ManagedByLabel].
func Remove(directory string, o registration.RemoveOptions) ([]registration.Removal, error) {
	if !filepath.IsAbs(directory) {
		return nil, fmt.Errorf("directory %q: must be an absolute path", directory)
	}
	var out []registration.Removal
	for _, folder := range []string{mutatingFolder, validatingFolder} {
		path := filepath.Join(directory, filePath(folder, o.Name))
		data, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return out, err
		}
		if !isOurs(data) {
			out = append(out, registration.Removal{
				Object: path, Action: registration.Left,
				Why: fmt.Sprintf("its object does not have the label %s=%s", registration.ManagedByLabel, registration.ManagedByValue),
			})
			continue
		}
		if !o.DryRun {
			if err := os.Remove(path); err != nil {
				return out, err
			}
		}
		out = append(out, registration.Removal{Object: path, Action: registration.Deleted})
	}
	return out, nil
}
