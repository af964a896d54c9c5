// SPDX-License-Identifier: Apache-2.0

// Package staticmanifests keeps webhook configurations in files that kube-apiserver reads
// (static admission manifests, KEP-5793).
//
// In: webhooks, a CA bundle, a directory. Out: files, as they are wanted. It never calls the
// API server, and never removes a file without the label of ours.
package staticmanifests

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// suffix is the suffix of the names of configurations that kube-apiserver reads from
// files (KEP-5793), and only of those.
const suffix = ".static.k8s.io"

// Manifests are those of [registration.Manifests] as static admission manifests of
// kube-apiserver: the name of c gets the suffix .static.k8s.io. The endpoint must be a URL, because
// kube-apiserver allows nothing else there. They contain no conversion stanzas, which are
// not admission.
func Manifests(c registration.Config, webhooks []admission.Webhook, caBundle []byte) ([]runtime.Object, error) {
	if c.Endpoint.Service != nil {
		return nil, errors.New("static manifests: kube-apiserver does not allow a service there; set a URL instead")
	}
	c.Owner = nil // files are not garbage-collected
	webhooks = slices.Clone(webhooks)
	for i := range webhooks {
		webhooks[i].Backstop = nil // kube-apiserver does not allow policies with parameters there
	}
	objects, err := registration.Manifests(c, webhooks, caBundle)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		object.(metav1.Object).SetName(c.Name + suffix)
	}
	return objects, nil
}

// The folders below [Options.Directory]. Each of the two admission plugins reads one, and
// kube-apiserver does not start if a folder contains the other type.
const (
	mutatingFolder   = "mutating"
	validatingFolder = "validating"
)

var folders = map[string]string{
	"MutatingWebhookConfiguration": mutatingFolder, "ValidatingWebhookConfiguration": validatingFolder,
}

// contents returns the desired content of each file, by path below the directory; nil for a
// file that must not exist.
func contents(c registration.Config, webhooks []admission.Webhook, caBundle []byte) (map[string][]byte, error) {
	objects, err := Manifests(c, webhooks, caBundle)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, folder := range folders {
		files[filePath(folder, c.Name)] = nil
	}
	for _, object := range objects {
		data, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("static manifests: %w", err)
		}
		files[filePath(folders[object.GetObjectKind().GroupVersionKind().Kind], c.Name)] = data
	}
	return files, nil
}

func filePath(folder, name string) string {
	return filepath.Join(folder, name+suffix+".yaml")
}
