// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

const checksumsFile = "checksums.txt"

// A summed file has its path below the folder of a release.
type summed struct{ name, sum string }

// sumsOf returns the sums of all files below a folder, but for those about them.
func sumsOf(folder string) ([]summed, error) {
	var out []summed
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(folder, file)
		if err != nil || slices.Contains([]string{checksumsFile, signatureFile, publicKeyFile, imageStatementFile, imageSignatureFile}, name) {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		out = append(out, summed{filepath.ToSlash(name), hex.EncodeToString(sum[:])})
		return nil
	})
	return out, err
}

// checksums writes the sums of all files in the folder, as sha256sum --check reads them.
func checksums(s settings) error {
	sums, err := sumsOf(s.out)
	if err != nil {
		return err
	}
	var text string
	for _, f := range sums {
		text += f.sum + "  " + f.name + "\n"
	}
	return s.write(checksumsFile, []byte(text))
}
