// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
)

// A Book has a unique ISBN.
type Book struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BookSpec `json:"spec"`
}

type BookSpec struct {
	ISBN string `json:"isbn,omitempty"`
}

type BookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Book `json:"items"`
}

func (b *Book) DeepCopyObject() runtime.Object {
	c := *b
	b.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

func (l *BookList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for _, book := range l.Items {
		c.Items = append(c.Items, *book.DeepCopyObject().(*Book))
	}
	return &c
}

var books = schema.GroupVersion{Group: "books.example.com", Version: "v1"}

func bookScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(books, &Book{}, &BookList{})
	metav1.AddToGroupVersion(scheme, books)
	return scheme
}

// bookCRD has an irregular plural.
func bookCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "tomes." + books.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: books.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "tomes", Singular: "tome", Kind: "Book", ListKind: "BookList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: books.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
						Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"isbn": {Type: "string"}},
					}},
				}},
			}},
		},
	}
}

func book(name, isbn string) *Book {
	return &Book{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: BookSpec{ISBN: isbn}}
}

// byISBN is the index of books.
func byISBN() func(*sallyport.CachedKind) {
	return sallyport.Index("isbn", func(b *Book) []string { return []string{b.Spec.ISBN} })
}

// unique denies a second book with an ISBN.
func unique(reader func(context.Context) client.Reader) admission.Handler {
	return admission.Validate(func(ctx context.Context, b *Book) error {
		var same BookList
		if err := reader(ctx).List(ctx, &same, client.MatchingFields{"isbn": b.Spec.ISBN}); err != nil {
			return err
		}
		for _, other := range same.Items {
			if other.Namespace != b.Namespace || other.Name != b.Name {
				return admission.Denyf("book %s has this ISBN already", other.Name)
			}
		}
		return nil
	}, admission.ForKind(books.WithKind("Book")))
}

// bookstore is an application that keeps ISBNs unique.
func bookstore(options ...sallyport.Option) (*sallyport.App, error) {
	return sallyport.New("bookstore", append([]sallyport.Option{
		sallyport.WithScheme(bookScheme()), sallyport.WithCRDs(bookCRD()),
		sallyport.WithWebhooks(admission.Validating("unique.books.example.com", admission.Rules(books.WithResource("tomes")), unique(sallyport.Cache))),
		sallyport.WithCache(&Book{}, byISBN()),
	}, options...)...)
}
