// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/internal/hosting"
)

const manifests = "manifests"

// hasManifests reports whether the command of an application prints what to install. It does not
// if there are controllers alone.
func hasManifests(application *cobra.Command) bool {
	found, _, err := application.Find([]string{manifests})
	return err == nil && found.Name() == manifests
}

// rights are the objects of 'manifests --part rbac' for an installation, printed by the command of
// the application. Given are flags of the server.
func rights(application *cobra.Command, of *doctor.Installation, given []string) ([]runtime.Object, error) {
	args := []string{manifests, "--part", "rbac", "--configuration-name", of.Registration.Name, "--service-account", of.ServiceAccount}
	if of.Registration.Service != nil {
		args = append(args, "--service", hosting.FormatService(of.Registration.Service))
	} else {
		args = append(args, "--url", cmp.Or(of.Registration.URL, "https://127.0.0.1")) // rights do not depend on it
	}
	if of.Certificate.AuthoritySecret != "" {
		args = append(args, "--authority-secret", of.Certificate.AuthoritySecret)
	}
	var printed bytes.Buffer
	application.SetArgs(append(args, given...))
	application.SetOut(&printed)
	application.SetErr(io.Discard)
	application.SilenceErrors = true
	if err := application.Execute(); err != nil {
		return nil, err
	}
	var objects []runtime.Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(&printed))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}
