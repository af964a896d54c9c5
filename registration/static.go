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

// staticSuffix is the suffix of the names of configurations that kube-apiserver reads from
// files (KEP-5793), and only of those.
const staticSuffix = ".static.k8s.io"

// StaticManifests are the [Manifests] as static admission manifests of kube-apiserver: the
// name of c gets the suffix .static.k8s.io. The endpoint must be a URL, because
// kube-apiserver allows nothing else there. They contain no conversion stanzas, which are
// not admission.
func StaticManifests(c Config, webhooks []admission.Webhook, caBundle []byte) ([]runtime.Object, error) {
	if c.Endpoint.Service != nil {
		return nil, errors.New("static manifests: kube-apiserver does not allow a service there; set a URL instead")
	}
	c.Owner = nil // files are not garbage-collected
	webhooks = slices.Clone(webhooks)
	for i := range webhooks {
		webhooks[i].Backstop = nil // kube-apiserver does not allow policies with parameters there
	}
	objects, err := Manifests(c, webhooks, caBundle)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		object.(metav1.Object).SetName(c.Name + staticSuffix)
	}
	return objects, nil
}

// The folders below [FilesOptions.Directory]. Each of the two admission plugins reads one, and
// kube-apiserver does not start if a folder contains the other type.
const (
	mutatingFolder   = "mutating"
	validatingFolder = "validating"
)

var folders = map[string]string{mutatingKind: mutatingFolder, validatingKind: validatingFolder}

// staticFiles returns the desired content of each file, by path below the directory; nil for a
// file that must not exist.
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
	return filepath.Join(folder, name+staticSuffix+".yaml")
}
