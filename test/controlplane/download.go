// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// publishedIndex lists the binaries that are published for envtest: of some releases of
// Kubernetes etcd, kube-apiserver and kubectl, in one archive a platform.
const publishedIndex = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"

// published are the components in such an archive.
var published = basic

// How long the index may take, which decides whether binaries are downloaded or built, and
// how long a download may stand still.
const (
	decideWithin = 5 * time.Second
	stallsAfter  = 30 * time.Second
)

// An archive is what an index says of one.
type archive struct {
	url    string
	sha512 string // in hexadecimal
}

// findArchive asks an index for the archive of a release for this platform. It has a limited
// time: whoever is behind a firewall that drops packets should not wait for it.
func findArchive(ctx context.Context, index string, of release, within time.Duration) (archive, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	body, err := get(ctx, index)
	if err != nil {
		return archive{}, err
	}
	text, err := io.ReadAll(io.LimitReader(body, 8<<20))
	if err := errors.Join(err, body.Close()); err != nil {
		return archive{}, err
	}
	name := fmt.Sprintf("envtest-v%s-%s-%s.tar.gz", of.version, runtime.GOOS, runtime.GOARCH)
	found, ok := inIndex(string(text), name)
	if !ok {
		return archive{}, fmt.Errorf("%s is not published", name)
	}
	return found, nil
}

// inIndex reads the two lines that an index has below the name of an archive. The index is
// YAML of one form, and the go.mod here pins nothing but Kubernetes.
func inIndex(index, name string) (archive, bool) {
	var a archive
	within := false
	for line := range strings.Lines(index) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		switch {
		case value == "":
			within = key == name
		case within && key == "hash":
			a.sha512 = value
		case within && key == "selfLink":
			a.url = value
		}
	}
	return a, a.url != "" && len(a.sha512) == 2*sha512.Size
}

// download puts the published components into a folder, all of them or none, and only if
// the archive has the checksum of the index and the API server is of the release.
func download(ctx context.Context, a archive, of release, dir string) error {
	fmt.Fprintf(os.Stderr, "Downloading %s of Kubernetes %s, published for envtest, once; cached in %s ", strings.Join(published, ", "), of.version, dir)
	started := time.Now()
	unpacked, err := os.MkdirTemp(dir, ".download-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(unpacked) }()
	if err := fetch(ctx, a, unpacked); err != nil {
		fmt.Fprintln(os.Stderr, " failed")
		return err
	}
	for _, name := range published {
		if !present(filepath.Join(unpacked, name)) {
			return fmt.Errorf("%s has no %s", a.url, name)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(unpacked, "kube-apiserver"), "--version").Output()
	if err != nil || strings.TrimSpace(string(out)) != "Kubernetes v"+of.version {
		return fmt.Errorf("kube-apiserver of %s says %q, %w", a.url, out, errors.Join(err, errors.New("want Kubernetes v"+of.version)))
	}
	for _, name := range published {
		if err := os.Rename(filepath.Join(unpacked, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, " done in %s\n", time.Since(started).Round(time.Second))
	return nil
}

// fetch unpacks an archive into a folder. What it leaves there is not to be used if it fails.
func fetch(ctx context.Context, a archive, dir string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(stallsAfter, func() { cancel(fmt.Errorf("nothing has come for %s", stallsAfter)) })
	defer stalled.Stop()
	body, err := get(ctx, a.url)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	sum := sha512.New()
	all := &progress{from: body, sum: sum, stalled: stalled}
	if err := unpack(all, dir); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("%s: %w", a.url, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != a.sha512 {
		return fmt.Errorf("%s has the SHA-512 %s, the index says %s", a.url, got, a.sha512)
	}
	return nil
}

// unpack writes those of the published components that an archive has, and reads it to its end.
func unpack(from io.Reader, dir string) error {
	compressed, err := gzip.NewReader(from)
	if err != nil {
		return err
	}
	files := tar.NewReader(compressed)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := filepath.Base(header.Name)
		if header.Typeflag != tar.TypeReg || !slices.Contains(published, name) {
			continue
		}
		file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, files) // its checksum is that of the index, or it is thrown away
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, from) // what follows the last file counts for the checksum
	return err
}

// progress sums up what is read, and prints a dot for every 10 MB.
type progress struct {
	from    io.Reader
	sum     hash.Hash
	stalled *time.Timer
	bytes   int
}

func (p *progress) Read(b []byte) (int, error) {
	const dot = 10 << 20
	n, err := p.from.Read(b)
	_, _ = p.sum.Write(b[:n])
	p.stalled.Reset(stallsAfter)
	if p.bytes/dot != (p.bytes+n)/dot {
		fmt.Fprint(os.Stderr, ".")
	}
	p.bytes += n
	return n, err
}

func get(ctx context.Context, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", url, resp.Status), resp.Body.Close())
	}
	return resp.Body, nil
}
