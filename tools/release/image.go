// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// largest is how many bytes an image may take on a node.
const largest = 63_000_000

// imageFolder has the OCI layout.
const imageFolder = "sallyport-image"

// user is that of the pods in config and charts: nobody's.
const user = "65532:65532"

// images makes an image FROM scratch with nothing but the binary: for each architecture a
// tarball for `docker load`, and for both together an OCI layout.
func images(s settings) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range imagePlatforms {
		image, err := s.image(p)
		if err != nil {
			return err
		}
		tag, err := name.NewTag("sallyport:" + s.version)
		if err != nil {
			return err
		}
		file := filepath.Join(s.out, "sallyport-image-"+p.arch+".tar")
		if err := tarball.WriteToFile(file, tag, image); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		unpacked, err := report(file, image)
		if err != nil {
			return err
		}
		if err := checkSize(p, unpacked); err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: mutate.MediaType(image, types.OCIManifestSchema1), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}
	folder := filepath.Join(s.out, imageFolder)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	_, err := layout.Write(folder, index)
	return err
}

func (s settings) image(p platform) (v1.Image, error) {
	if s.built != "" {
		return s.imageOf(p, filepath.Join(s.built, p.binary()))
	}
	folder, err := os.MkdirTemp("", "sallyport-image-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary := filepath.Join(folder, "sallyport")
	if err := s.build(p, binary); err != nil {
		return nil, err
	}
	return s.imageOf(p, binary)
}

// imageOf is the image with that binary.
func (s settings) imageOf(p platform, binary string) (v1.Image, error) {
	var content bytes.Buffer
	files := tar.NewWriter(&content)
	if err := addFile(files, "sallyport", binary, 0o755); err != nil {
		return nil, err
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithCompressionLevel(9))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = p.os, p.arch
	config.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config = v1.Config{
		User: user, Entrypoint: []string{"/sallyport"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "sallyport",
			"org.opencontainers.image.source":   "https://github.com/sallyport-io/sallyport",
			"org.opencontainers.image.version":  s.version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// checkSize refuses an image that is too large.
func checkSize(p platform, unpacked int64) error {
	if unpacked <= largest {
		return nil
	}
	return fmt.Errorf("the image for %s has %d bytes, more than the limit of %d: look for new packages in `go list -deps ./cmd/sallyport`, "+
		"and for <ReflectMethod> in `go build -ldflags=-dumpdep`, for which the linker keeps all methods", p, unpacked, largest)
}

// report prints how large an image is: what is pulled, and what it takes on a node, which
// it returns in bytes.
func report(file string, image v1.Image) (unpacked int64, err error) {
	layers, err := image.Layers()
	if err != nil {
		return 0, err
	}
	var pulled int64
	for _, layer := range layers {
		size, err := layer.Size()
		if err != nil {
			return 0, err
		}
		content, err := layer.Uncompressed()
		if err != nil {
			return 0, err
		}
		n, err := io.Copy(io.Discard, content)
		if err := errors.Join(err, content.Close()); err != nil {
			return 0, err
		}
		pulled, unpacked = pulled+size, unpacked+n
	}
	digest, err := image.Digest()
	if err != nil {
		return 0, err
	}
	fmt.Printf("%s: %.1f MB to pull, %.1f MB unpacked, %s\n", filepath.Base(file), mb(pulled), mb(unpacked), digest)
	return unpacked, nil
}
