// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
)

// StaticSuffix ends the names of configurations that kube-apiserver reads from
// files (KEP-5793), and those of no others.
const StaticSuffix = ".static.k8s.io"

// StaticManifests are [Manifests] for the static admission manifests of
// kube-apiserver: the name of c gets [StaticSuffix]. The endpoint must be a URL,
// because kube-apiserver takes no others there. Conversion stanzas are no
// admission, and are not in them.
func StaticManifests(c Config, webhooks []admission.Webhook, caBundle []byte) ([]runtime.Object, error) {
	if c.Endpoint.Service != nil {
		return nil, errors.New("static manifests: kube-apiserver takes no service there; set a URL instead")
	}
	c.Owner = nil // a file is no object that could be collected
	webhooks = slices.Clone(webhooks)
	for i := range webhooks {
		webhooks[i].Backstop = nil // kube-apiserver takes no policy with a parameter there
	}
	objects, err := Manifests(c, webhooks, caBundle)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		object.(metav1.Object).SetName(c.Name + StaticSuffix)
	}
	return objects, nil
}

// The folders below [FilesOptions.Directory]: each of the two admission plugins
// reads one, and kube-apiserver does not start if it holds what is for the other.
const (
	mutatingFolder   = "mutating"
	validatingFolder = "validating"
)

var folders = map[string]string{mutatingKind: mutatingFolder, validatingKind: validatingFolder}

// staticFiles is what is to stand in each file, by its path below the directory;
// nil for one that is not to be there.
func staticFiles(c Config, webhooks []admission.Webhook, caBundle []byte) (map[string][]byte, error) {
	objects, err := StaticManifests(c, webhooks, caBundle)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, folder := range folders {
		files[staticPath(folder, c.Name)] = nil
	}
	for _, object := range objects {
		data, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("static manifests: %w", err)
		}
		files[staticPath(folders[object.GetObjectKind().GroupVersionKind().Kind], c.Name)] = data
	}
	return files, nil
}

func staticPath(folder, name string) string {
	return filepath.Join(folder, name+StaticSuffix+".yaml")
}
