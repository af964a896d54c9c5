// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// pinned is the release of the go.mod here.
func pinned(t *testing.T) release {
	t.Helper()
	known, err := releases(".")
	if err != nil {
		t.Fatal(err)
	}
	return known[0]
}

// packed is an archive as they are published, with programs that say they are of a version.
func packed(t *testing.T, version string, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	files := tar.NewWriter(compressed)
	for _, name := range names {
		text := "#!/bin/sh\necho Kubernetes v" + version + "\n"
		header := &tar.Header{Name: "controller-tools/envtest/" + name, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if err := files.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(files, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestPublishedBinariesAreTakenOnlyIfTheyAreWhatTheIndexSays(t *testing.T) {
	of := pinned(t)
	whole := packed(t, of.version, published...)
	for name, test := range map[string]struct {
		listed  string // the version in the index
		archive []byte
		sum     []byte // whose checksum the index has
		want    string // in the error
	}{
		"what the index lists is unpacked":             {of.version, whole, whole, ""},
		"files besides are left out":                   {of.version, packed(t, of.version, append([]string{"../escape", "README"}, published...)...), nil, ""},
		"a release that is not published":              {"1.2.3", whole, whole, "is not published"},
		"an archive that was changed":                  {of.version, packed(t, of.version, "kubectl", "etcd", "kube-apiserver"), whole, "the index says"},
		"an archive that ends early":                   {of.version, whole[:len(whole)/2], nil, "unexpected EOF"},
		"an archive without one of them":               {of.version, packed(t, of.version, "etcd", "kube-apiserver"), nil, "has no kubectl"},
		"an API server of another release":             {of.version, packed(t, "1.2.3", published...), nil, "want Kubernetes v" + of.version},
		"what is not an archive, as a proxy's page":    {of.version, []byte("<html>"), nil, "EOF"},
		"an archive that the index lists, but is gone": {of.version, nil, whole, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			sum := test.sum
			if sum == nil {
				sum = test.archive
			}
			hash := sha512.Sum512(sum)
			mux := http.NewServeMux()
			server := httptest.NewServer(mux)
			defer server.Close()
			mux.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprint(w, "releases:\n")
				for _, platform := range []string{"plan9-amd64", runtime.GOOS + "-" + runtime.GOARCH} {
					_, _ = fmt.Fprintf(w, "  v%[1]s:\n    envtest-v%[1]s-%[2]s.tar.gz:\n      hash: %[3]s\n      selfLink: %[4]s/%[2]s.tar.gz\n", test.listed, platform, hex.EncodeToString(hash[:]), server.URL)
				}
			})
			if test.archive != nil {
				mux.HandleFunc("/"+runtime.GOOS+"-"+runtime.GOARCH+".tar.gz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(test.archive) })
			}
			dir := t.TempDir()
			a, err := findArchive(t.Context(), server.URL+"/index.yaml", of, time.Minute)
			if err == nil {
				err = download(t.Context(), a, of, dir)
			}
			files, globErr := filepath.Glob(filepath.Join(dir, "*"))
			hidden, hiddenErr := filepath.Glob(filepath.Join(dir, ".*"))
			if globErr != nil || hiddenErr != nil {
				t.Fatal(globErr, hiddenErr)
			}
			if len(hidden) > 0 {
				t.Errorf("left behind: %v", hidden)
			}
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || len(files) > 0 {
					t.Errorf("got %v and the files %v, want %q and none", err, files, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(files) != len(published) || slices.ContainsFunc(published, func(name string) bool { return !present(filepath.Join(dir, name)) }) {
				t.Errorf("there are %v, want %v, executable", files, published)
			}
		})
	}
}

func TestANetworkThatDoesNotAnswerIsGivenUp(t *testing.T) {
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-done:
		}
	}))
	defer server.Close()
	defer close(done)
	if _, err := findArchive(t.Context(), server.URL, pinned(t), 50*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestWhoSaysBuildAsksNobody(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked = true; http.NotFound(w, nil) }))
	defer server.Close()
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("SALLYPORT_CACHE", t.TempDir())
	t.Setenv("PATH", t.TempDir()) // there is no go command: the build fails at once
	for mode, want := range map[string]bool{"build": false, "": true} {
		asked = false
		t.Setenv("SALLYPORT_CONTROLPLANE", mode)
		if _, err := run(t.Context(), []string{"-index", server.URL, "kubectl"}); err == nil || !strings.Contains(err.Error(), "building kubectl") && !strings.Contains(err.Error(), "executable file not found") {
			t.Errorf("%q: %v", mode, err)
		}
		if asked != want {
			t.Errorf("SALLYPORT_CONTROLPLANE=%q: the index was asked: %t", mode, asked)
		}
	}
	t.Setenv("SALLYPORT_CONTROLPLANE", "never")
	if _, err := run(t.Context(), []string{"kubectl"}); err == nil || !strings.Contains(err.Error(), "set it to build") {
		t.Errorf("an unknown value: %v", err)
	}
}

func TestAPlanSaysWhatIsMissingAndDoesNothing(t *testing.T) {
	of := pinned(t)
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("SALLYPORT_CACHE", filepath.Join(t.TempDir(), "cache"))
	for _, test := range []struct{ mode, want string }{
		{"", "etcd, kube-apiserver, kubectl downloaded if they are published and the network has them; else built once"},
		{"build", "built once, on two cores kubectl about 1 min"},
	} {
		t.Setenv("SALLYPORT_CONTROLPLANE", test.mode)
		got, err := run(t.Context(), []string{"-plan", "kubectl"})
		if err != nil || !strings.Contains(got, test.want) || !strings.Contains(got, of.version) {
			t.Errorf("%q: %q, %v", test.mode, got, err)
		}
	}
	if _, err := os.Stat(os.Getenv("SALLYPORT_CACHE")); !os.IsNotExist(err) {
		t.Errorf("a plan makes the cache: %v", err)
	}
}
