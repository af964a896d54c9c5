// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// want compares all resulting objects with a file.
func (f *comparison) want() error {
	path := f.expect.Want
	if path == "" {
		return nil
	}
	want, err := readWanted(path)
	if err != nil {
		return err
	}
	got, err := f.asYAML()
	if err == nil {
		f.differ(path, want, got, "the objects that come out differ")
	}
	return err
}

// readWanted returns the file in the format of the results.
func readWanted(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is not there: --update writes it", path)
	}
	if err != nil {
		return "", err
	}
	documents, err := manifest.Documents(path, data)
	if err != nil {
		return "", err
	}
	return joinYAML(documents, func(d *manifest.Document) jsontext.Value { return d.Raw })
}

func (f *comparison) asYAML() (string, error) {
	return joinYAML(f.objects, func(out *review.Outcome) jsontext.Value { return out.After })
}

func joinYAML[T any](list []T, raw func(T) jsontext.Value) (string, error) {
	texts := make([]string, len(list))
	for i, entry := range list {
		text, err := manifest.YAML(raw(entry))
		if err != nil {
			return "", err
		}
		texts[i] = string(text)
	}
	return strings.Join(texts, "---\n"), nil
}

// patch compares the patch of the only object with a file.
func (f *comparison) patch() error {
	path := f.expect.Patch
	if path == "" {
		return nil
	}
	got, err := f.onlyPatch()
	if err != nil {
		f.problem("%v", err)
		return nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not there: --update writes it", path)
	}
	if err != nil {
		return err
	}
	documents, err := manifest.Documents(path, data)
	if err != nil {
		return err
	}
	if len(documents) != 1 {
		return fmt.Errorf("%s: it holds %d documents; a JSON Patch is one", path, len(documents))
	}
	want, err := manifest.Indent(documents[0].Raw)
	if err == nil {
		f.differ(path, want, got, "the patch differs")
	}
	return err
}

func (f *comparison) onlyPatch() (string, error) {
	if len(f.objects) != 1 {
		return "", fmt.Errorf("%d objects came out; a patch is that of one", len(f.objects))
	}
	return manifest.Indent(review.Patch(f.objects[0]))
}

func (f *comparison) differ(path, want, got, message string) {
	if want != got {
		f.problems = append(f.problems, Problem{
			Message: message + " from " + path,
			Diff:    udiff.Unified(filepath.ToSlash(path), "result", want, got),
		})
	}
}

// update writes the results to the files with the expectations.
func (c *Case) update(outcomes []*review.Outcome) (written []string, err error) {
	f := comparison{expect: &c.Expect}
	var denial string
	for _, out := range outcomes {
		if out.Denied == nil {
			f.objects = append(f.objects, out)
		} else if denial == "" {
			denial = out.Denied.Message
		}
	}
	write := func(path, text string) {
		if was, errRead := os.ReadFile(path); err != nil || errRead == nil && string(was) == text {
			return
		}
		if err = os.WriteFile(path, []byte(text), 0o666); err == nil {
			written = append(written, path)
		}
	}
	if c.folder && (c.Expect.Want != "" || exists(c.denied)) {
		if denial != "" && c.Expect.Want != "" {
			err = removeIfThere(c.Expect.Want)
		} else if denial == "" {
			err = removeIfThere(c.denied)
			c.Expect.Want = filepath.Join(filepath.Dir(c.denied), wantFile)
			c.Expect.Allowed, c.Expect.Message = nil, ""
		}
		if denial != "" {
			c.Expect.Want, c.Expect.Allowed, c.Expect.Message = "", new(false), denial
			write(c.denied, denial+"\n")
		}
	}
	if path := c.Expect.Want; path != "" && err == nil {
		text, errText := f.asYAML()
		if err = errText; err == nil && differs(path, text) {
			write(path, text)
		}
	}
	if path := c.Expect.Patch; path != "" && err == nil {
		text, errText := f.onlyPatch()
		if err = errText; err == nil {
			write(path, text)
		}
	}
	return written, err
}

// differs reports whether the content of a file differs from text. It ignores comments and the
// order of fields, so that update keeps them.
func differs(path, text string) bool {
	was, err := readWanted(path)
	return err != nil || was != text
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
