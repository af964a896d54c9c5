// SPDX-License-Identifier: Apache-2.0

// Command bookstore is an operator for Books, which come in three versions. Webhooks set defaults,
// validate, and keep ISBNs unique in the cluster; a controller reports the duplicates that no webhook
// can prevent.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/commands"
	"github.com/sallyport-io/sallyport/conversion"
	v1 "github.com/sallyport-io/sallyport/examples/bookstore/api/v1"
	"github.com/sallyport-io/sallyport/examples/bookstore/api/v1alpha1"
	"github.com/sallyport-io/sallyport/examples/bookstore/api/v1beta1"
)

func main() {
	app, err := newApp()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cmd := app.Command()
	commands.AddTo(cmd, app)
	os.Exit(sallyport.Execute(cmd))
}

func newApp() (*sallyport.App, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v1beta1.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	crd, err := definition()
	if err != nil {
		return nil, err
	}
	// The API server converts objects of other versions for these webhooks.
	rules := admission.Rules(v1.Resource) // CREATE and UPDATE
	return sallyport.New("bookstore",
		sallyport.WithScheme(scheme),
		sallyport.WithWebhooks(
			admission.Mutating("default.books.bookstore.example.com", rules, admission.Mutate(setDefaults),
				admission.WithFailurePolicy(admissionregistrationv1.Ignore)), // the next one checks the result
			admission.Validating("validate.books.bookstore.example.com", rules,
				admission.ValidateEach(admission.Checks[*v1.Book]{Create: validateCreate, Update: validateUpdate})),
			admission.Validating("scale.books.bookstore.example.com",
				admission.Rules(v1.GroupVersion.WithResource("books/scale"), admissionregistrationv1.Update),
				admission.Validate(validateScale)),
		),
		sallyport.WithConverters(conversion.HubAndSpokes[*v1.Book](scheme)),
		sallyport.WithCache(&v1.Book{}, sallyport.Index(isbnIndex, isbn)),
		sallyport.WithController("book", setUpController, sallyport.WithPolicyRules(rbacv1.PolicyRule{
			APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{"books/status"}, Verbs: []string{"update"},
		})),
		sallyport.WithCRDs(crd),
		sallyport.WithStorageMigration(crd.Name),
	)
}

//go:embed config/crd/bookstore.example.com_books.yaml
var definitionYAML []byte

// definition is the generated CustomResourceDefinition.
func definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definitionYAML, crd); err != nil {
		return nil, fmt.Errorf("definition of Book: %w", err)
	}
	return crd, nil
}
