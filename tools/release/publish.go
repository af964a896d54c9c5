// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// publish puts the image and the chart of a release into a registry: the image by its digest, its signature, the
// chart, and then the image's tag, so that no chart can be fetched whose image is not there. It
// may be run again, and refuses a tag that stands for something else.
func publish(s settings) error {
	if s.registry == "" {
		return errors.New("-registry HOST/PATH is required")
	}
	if _, err := os.Stat(filepath.Join(s.out, signatureFile)); err != nil {
		return fmt.Errorf("the release is not signed: run `release all -key FILE` first: %w", err)
	}
	var options []name.Option
	if s.plainHTTP {
		options = append(options, name.Insecure)
	}
	number := strings.TrimPrefix(s.version, "v")
	image, err := name.NewTag(s.registry+"/sallyport:"+s.version, options...)
	if err != nil {
		return err
	}
	chart, err := name.NewTag(s.registry+"/charts/sallyport:"+number, options...)
	if err != nil {
		return err
	}
	images, err := layout.ImageIndexFromPath(filepath.Join(s.out, imageFolder))
	if err != nil {
		return err
	}
	digest, err := images.Digest()
	if err != nil {
		return err
	}
	with := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if known, err := remote.Head(image, with); err == nil && known.Digest != digest {
		return taken(image, known.Digest, digest)
	}
	archive := filepath.Join(s.out, s.chartArchive())
	packed, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(packed)
	content := v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
	if known, err := remote.Image(chart, with); err == nil {
		manifest, err := known.Manifest()
		if err != nil {
			return fmt.Errorf("nothing was published: %s: %w", chart, err)
		}
		if len(manifest.Layers) != 1 || manifest.Layers[0].Digest != content {
			return taken(chart, manifest.Layers[0].Digest, content)
		}
	}
	if err := remote.WriteIndex(image.Digest(digest.String()), images, with); err != nil {
		return fmt.Errorf("pushing the image: %w; nothing is tagged yet: run publish again", err)
	}
	signature, err := s.signature()
	if err != nil {
		return err
	}
	// Where cosign looks for it.
	if err := remote.Write(image.Repository.Tag(digest.Algorithm+"-"+digest.Hex+".sig"), signature, with); err != nil {
		return fmt.Errorf("pushing the image's signature: %w; nothing is tagged yet: run publish again", err)
	}
	push := []string{"push", archive, "oci://" + s.registry + "/charts"}
	if s.plainHTTP {
		push = append(push, "--plain-http")
	}
	if err := s.tool("helm", nil, push...); err != nil {
		return fmt.Errorf("pushing the chart: %w; the image is not tagged yet: run publish again", err)
	}
	if err := remote.Tag(image, images, with); err != nil {
		return fmt.Errorf("tagging the image: %w; only the chart is published: run publish again", err)
	}
	fmt.Printf("published %s@%s and %s\n", image, digest, chart)
	return nil
}

// signature is the image's, as an artefact of its own.
func (s settings) signature() (v1.Image, error) {
	statement, err := os.ReadFile(filepath.Join(s.out, imageStatementFile))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(s.out, imageSignatureFile))
	if err != nil {
		return nil, err
	}
	artefact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return mutate.Append(artefact, mutate.Addendum{
		Layer:       static.NewLayer(statement, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": string(text)},
	})
}

// taken says that a tag stands for something else.
func taken(tag name.Tag, there, here v1.Hash) error {
	return fmt.Errorf("nothing was published: %s already exists with digest %s instead of %s: choose the next version", tag, there, here)
}
