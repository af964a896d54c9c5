// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

const checksumsFile = "checksums.txt"

// checksums writes the sums of all files in the folder, as sha256sum --check reads them.
func checksums(s settings) error {
	entries, err := os.ReadDir(s.out) // sorted
	if err != nil {
		return err
	}
	var text string
	for _, entry := range entries {
		if !entry.Type().IsRegular() || entry.Name() == checksumsFile {
			continue
		}
		data, err := os.ReadFile(filepath.Join(s.out, entry.Name()))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		text += hex.EncodeToString(sum[:]) + "  " + entry.Name() + "\n"
	}
	return os.WriteFile(filepath.Join(s.out, checksumsFile), []byte(text), 0o644) //nolint:gosec // everybody may read it
}
