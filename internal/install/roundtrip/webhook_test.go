// SPDX-License-Identifier: Apache-2.0

package roundtrip

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestPathsForAllElements(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string]string{"": "", "/spec/a": "/spec/a", "/spec/a/10/b1": "/spec/a/*/b1", "/0": "/*", "/a//b": "/a//b"} {
		if got := general(pointer); got != want {
			t.Errorf("%s becomes %s", pointer, got)
		}
	}
}

func TestAnswersOfWebhooks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ answer, want string }{
		"good":                {`{"response":{"uid":"u","result":{"status":"Success"},"convertedObjects":[{"kind":"Box","apiVersion":"a/v1"}]}}`, ""},
		"no JSON":             {`<html>`, "not a review"},
		"no response":         {`{}`, "no response for the request"},
		"another request":     {`{"response":{"uid":"v","result":{"status":"Success"},"convertedObjects":[{}]}}`, "no response for the request"},
		"a failure":           {`{"response":{"uid":"u","result":{"status":"Failure","message":"too big"}}}`, "too big"},
		"no object":           {`{"response":{"uid":"u","result":{"status":"Success"}}}`, "0 objects for one"},
		"an object without a": {`{"response":{"uid":"u","result":{"status":"Success"},"convertedObjects":[{}]}}`, "converted object is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object, err := answerOf([]byte(test.answer), "u")
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) || err == nil && object["kind"] != "Box" {
				t.Errorf("%v, %v; want %q", object, err, test.want)
			}
		})
	}
}

func FuzzAnswerOf(f *testing.F) {
	f.Add([]byte(`{"response":{"uid":"u","result":{"status":"Success"},"convertedObjects":[{"kind":"Box","apiVersion":"a/v1"}]}}`))
	f.Add([]byte(`{"response":{"uid":"u","result":{"status":"Failure","message":"no"}}}`))
	f.Add([]byte(`{"response":null}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		object, err := answerOf(answer, "u")
		if err == nil && object == nil {
			t.Errorf("%s: neither an object nor an error", answer)
		}
	})
}

func TestWebhooksThatCannotBeCalled(t *testing.T) {
	t.Parallel()
	url := "https://127.0.0.1:1/convert"
	for name, test := range map[string]struct {
		conversion apiextensionsv1.WebhookConversion
		want       string
	}{
		"no client config":            {apiextensionsv1.WebhookConversion{}, "clientConfig is missing"},
		"neither url nor service":     {apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{}}, "neither url nor service"},
		"an invalid bundle":           {apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: []byte("x")}}, "caBundle has no certificate"},
		"a Service without a cluster": {apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{}}}, "needs a cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crd := &apiextensionsv1.CustomResourceDefinition{}
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &test.conversion}
			if _, err := ofDefinition(crd, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
