// SPDX-License-Identifier: Apache-2.0

package roundtrip

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
)

// callLimit is what the API server gives a conversion webhook.
const callLimit = 30 * time.Second

// maxAnswer is more than an API server stores of an object.
const maxAnswer = 32 << 20

// ofDefinition returns a converter that does what the API server does for a definition with
// several versions: it asks the conversion webhook, or else replaces the apiVersion. A webhook
// behind a Service is reached by the API server's proxy; client may be nil for others.
func ofDefinition(crd *apiextensionsv1.CustomResourceDefinition, client rest.Interface) (conversion.Converter, error) {
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	var versions []string
	for _, version := range crd.Spec.Versions {
		versions = append(versions, version.Name)
	}
	converter := conversion.APIVersionOnly(kind, versions...)
	if c := crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
		if c.Webhook == nil || c.Webhook.ClientConfig == nil {
			return converter, fmt.Errorf("%s: spec.conversion.webhook.clientConfig is missing", crd.Name)
		}
		w := webhook{group: crd.Spec.Group, version: reviewversion.Best(c.Webhook.ConversionReviewVersions)}
		var err error
		if w.post, err = poster(c.Webhook.ClientConfig, client); err != nil {
			return converter, fmt.Errorf("%s: spec.conversion.webhook.clientConfig: %w", crd.Name, err)
		}
		converter = conversion.Unstructured(kind, versions, w.convert)
	}
	converter = converter.WithPlural(crd.Spec.Names.Plural)
	return converter, converter.Problems()
}

// webhook converts by reviews of a version.
type webhook struct {
	group, version string
	post           func(ctx context.Context, review []byte) ([]byte, error)
}

func (w webhook) convert(ctx context.Context, object *unstructured.Unstructured, version string) error {
	type request struct {
		UID               string           `json:"uid"`
		DesiredAPIVersion string           `json:"desiredAPIVersion"`
		Objects           []map[string]any `json:"objects"`
	}
	const uid = "convert"
	review, err := json.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Request         request `json:"request"`
	}{
		metav1.TypeMeta{APIVersion: apiextensionsv1.GroupName + "/" + w.version, Kind: "ConversionReview"},
		request{uid, w.group + "/" + version, []map[string]any{object.Object}},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	raw, err := w.post(ctx, review)
	if err != nil {
		return &unansweredError{err}
	}
	converted, err := answerOf(raw, uid)
	if err != nil {
		return fmt.Errorf("conversion webhook: %w", err)
	}
	object.Object = converted
	return nil
}

// unansweredError says that a webhook did not answer, and so nothing of the object.
type unansweredError struct{ err error }

func (e *unansweredError) Error() string {
	return "the conversion webhook does not answer: " + e.err.Error()
}
func (e *unansweredError) Unwrap() error { return e.err }

// answerOf is the object in the answer to a review of one object.
func answerOf(raw []byte, uid string) (map[string]any, error) {
	var review struct {
		Response *struct {
			UID              string
			Result           metav1.Status
			ConvertedObjects []json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &review); err != nil {
		return nil, errors.New("the answer is not a review")
	}
	switch r := review.Response; {
	case r == nil || r.UID != uid:
		return nil, errors.New("the review has no response for the request")
	case r.Result.Status != metav1.StatusSuccess:
		return nil, errors.New(r.Result.Message)
	case len(r.ConvertedObjects) != 1:
		return nil, fmt.Errorf("the response has %d objects for one", len(r.ConvertedObjects))
	default:
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(r.ConvertedObjects[0]); err != nil {
			return nil, errors.New("the converted object is invalid")
		}
		return object.Object, nil
	}
}

// poster returns how a webhook is called.
func poster(config *apiextensionsv1.WebhookClientConfig, client rest.Interface) (func(context.Context, []byte) ([]byte, error), error) {
	switch service := config.Service; {
	case config.URL != nil:
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, err
		}
		if len(config.CABundle) > 0 {
			pool = x509.NewCertPool()
			if !pool.AppendCertsFromPEM(config.CABundle) {
				return nil, errors.New("caBundle has no certificate")
			}
		}
		caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}}
		return func(ctx context.Context, review []byte) ([]byte, error) {
			return post(ctx, caller, *config.URL, review)
		}, nil
	case service != nil && client == nil:
		return nil, errors.New("it is a Service, which needs a cluster")
	case service != nil:
		port, path := int32(443), ""
		if service.Port != nil {
			port = *service.Port
		}
		if service.Path != nil {
			path = *service.Path
		}
		return func(ctx context.Context, review []byte) ([]byte, error) {
			result := client.Post().AbsPath("/api/v1/namespaces", service.Namespace, "services", "https:"+service.Name+":"+strconv.Itoa(int(port)), "proxy", path).
				SetHeader("Content-Type", "application/json").Body(review).Do(ctx)
			if err := result.Error(); err != nil {
				return nil, fmt.Errorf("by the proxy of the API server, for which you need the right to create services/proxy: %w", err)
			}
			return result.Raw()
		}, nil
	default:
		return nil, errors.New("neither url nor service is set")
	}
}

func post(ctx context.Context, caller *http.Client, url string, review []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(review))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := caller.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is HTTP %d", response.StatusCode)
	}
	return io.ReadAll(io.LimitReader(response.Body, maxAnswer))
}
