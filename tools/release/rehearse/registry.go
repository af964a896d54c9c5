// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// pullable is how many bytes an image may take compressed.
const pullable = 40_000_000

// failing is a registry that refuses charts as long as it is told to.
type failing struct {
	server *httptest.Server
	broken atomic.Bool
}

func newRegistry() *failing {
	r := &failing{}
	real := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.broken.Load() && req.Method != http.MethodGet && req.Method != http.MethodHead && strings.Contains(req.URL.Path, "/charts/") {
			http.Error(w, "no space", http.StatusInsufficientStorage)
			return
		}
		real.ServeHTTP(w, req)
	}))
	return r
}

func (f *failing) host() string { return strings.TrimPrefix(f.server.URL, "http://") }

func (r *rehearsal) imageTag() (name.Tag, error) {
	return name.NewTag(r.registry.host()+"/sallyport-io/sallyport:"+r.version, name.Insecure)
}

func (r *rehearsal) publish(ctx context.Context) error {
	tag, err := r.imageTag()
	if err != nil {
		return err
	}
	publish := func() error {
		_, err := r.releaseCommand(ctx, "publish", "-out", r.out, "-registry", r.registry.host()+"/sallyport-io", "-plain-http")
		return err
	}
	r.registry.broken.Store(true)
	if err := wantError(publish(), "run publish again"); err != nil {
		return fmt.Errorf("publishing to a registry that rejects charts: %w", err)
	}
	if _, err := remote.Head(tag); err == nil {
		return errors.New("the image is tagged although the registry rejected the chart")
	}
	r.registry.broken.Store(false)
	if err := publish(); err != nil {
		return err
	}
	if err := publish(); err != nil {
		return fmt.Errorf("publishing again: %w", err)
	}
	_, err = remote.Head(tag)
	return err
}

// image fetches the image of both architectures, and looks at what is in it.
func (r *rehearsal) image(context.Context) error {
	tag, err := r.imageTag()
	if err != nil {
		return err
	}
	index, err := remote.Index(tag)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) != 2 {
		return fmt.Errorf("the index has %d architectures", len(manifest.Manifests))
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	for _, m := range manifest.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			return err
		}
		config, err := image.ConfigFile()
		if err != nil {
			return err
		}
		if config.Config.User != "65532:65532" || config.Config.Labels["org.opencontainers.image.version"] != r.version {
			return fmt.Errorf("%s: wrong user or version in the configuration: %+v", m.Platform, config.Config)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 1 {
			return fmt.Errorf("%s: %d layers, want 1 (%w)", m.Platform, len(layers), err)
		}
		if size, err := layers[0].Size(); err != nil || size > pullable {
			return fmt.Errorf("%s: %d bytes to pull, too many (%w)", m.Platform, size, err)
		}
		files := tar.NewReader(mutate.Extract(image))
		header, err := files.Next()
		if err != nil || header.Name != "sallyport" {
			return fmt.Errorf("%s: the first file is not sallyport: %+v (%w)", m.Platform, header, err)
		}
		content, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		for _, path := range []string{r.tmp, home + "/"} {
			if bytes.Contains(content, []byte(path)) {
				return fmt.Errorf("%s: the binary contains the build path %s", m.Platform, path)
			}
		}
		if next, err := files.Next(); !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: the image has a second file, %+v", m.Platform, next)
		}
	}
	return nil
}
