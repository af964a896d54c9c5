// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The limits of a project's Go files.
const (
	maxFileBytes    = 16 << 20
	maxProjectBytes = 512 << 20
	maxMarkers      = 10_000
)

var errManyMarkers = fmt.Errorf("its Go files have more than %d markers: name the folder of one project", maxMarkers)

var errTooMuch = fmt.Errorf("its Go files have more than %d MiB: name the folder of one project", maxProjectBytes>>20)

// sources reads the Go files of a project: regular files inside of it, to which links may lead.
type sources struct {
	project string
	root    *os.Root
	bytes   int64 // read so far
}

func openSources(project string) (*sources, error) {
	root, err := os.OpenRoot(project)
	return &sources{project: project, root: root}, err
}

func (s *sources) close() { _ = s.root.Close() } // it was only read

// read returns the content of a file by its path in the project. The error is errTooMuch if the project
// is too large.
func (s *sources) read(name string) ([]byte, error) {
	shown := filepath.ToSlash(name)
	info, err := s.root.Stat(name) // before it is opened: opening a pipe waits for a writer
	if err != nil {
		return nil, fmt.Errorf("%q: %w: a link may lead to a file of the project", shown, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file: remove it, or name the folder of a project", shown)
	}
	file, err := s.root.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("%q has more than %d MiB", shown, maxFileBytes>>20)
	}
	if s.bytes += int64(len(text)); s.bytes > maxProjectBytes {
		return nil, fmt.Errorf("%s: %w", s.project, errTooMuch)
	}
	return text, nil
}
