// SPDX-License-Identifier: Apache-2.0

// Command crontab is a small operator: the CronTab of the Kubernetes documentation,
// in three versions, with a webhook that fills in defaults, one that validates, and a
// controller. It runs as one process, or as two by --webhooks and --controllers.
package main

import (
	_ "embed"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/conversion"
	v1 "github.com/sallyport-io/sallyport/examples/crontab/api/v1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1alpha1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1beta1"
)

func main() {
	app, err := newApp()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(sallyport.Execute(app.Command()))
}

func newApp() (*sallyport.App, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	crd, err := definition()
	if err != nil {
		return nil, err
	}
	rules := admission.Rules(v1.Resource) // CREATE and UPDATE
	return sallyport.New("crontab",
		sallyport.WithScheme(scheme),
		sallyport.WithWebhooks(
			admission.Mutating("default.crontabs.stable.example.com", rules, admission.Mutate(setDefaults)),
			admission.Validating("validate.crontabs.stable.example.com", rules,
				admission.ValidateEach(admission.Checks[*v1.CronTab]{Create: validate, Update: validateUpdate})),
		),
		sallyport.WithConverters(conversion.HubAndSpokes[*v1beta1.CronTab](scheme)),
		sallyport.WithController("crontab", setUpController),
		sallyport.WithCRDs(crd),
		sallyport.WithPolicyRules(controllerRules()...),
	)
}

//go:embed config/crd/stable.example.com_crontabs.yaml
var definitionYAML []byte

// definition is the generated CustomResourceDefinition.
func definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definitionYAML, crd); err != nil {
		return nil, fmt.Errorf("definition of CronTab: %w", err)
	}
	return crd, nil
}
