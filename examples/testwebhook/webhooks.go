// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
)

const (
	testKey    = "webhook-e2e-test"
	disallowed = "webhook-disallow"
)

var (
	pods       = corev1.SchemeGroupVersion.WithResource("pods")
	attach     = corev1.SchemeGroupVersion.WithResource("pods/attach")
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "*", Resource: "customresourcedefinitions"}
	anything   = schema.GroupVersionResource{Group: "*", Version: "*", Resource: "*"}
)

func webhooks(sidecarImage string, delay time.Duration) []admission.Webhook {
	sidecar := refuseWith(metav1.Status{Code: http.StatusInternalServerError, Message: "No image specified by the sidecar-image parameter"})
	if sidecarImage != "" {
		sidecar = admission.Mutate(addSidecar(sidecarImage))
	}
	return []admission.Webhook{
		validating("/always-allow-delay-5s", anything, allowAfter(delay)),
		validating("/always-deny", anything, refuseWith(metav1.Status{Message: "this webhook denies all requests"})),
		mutating("/add-label", anything, admission.Mutate(addLabel)),
		validating("/pods", pods, admission.Chain(denyOthers(pods), admission.Validate(checkPod(delay)))),
		validating("/pods/attach", attach, admission.ValidateEach(admission.Checks[*corev1.PodAttachOptions]{Connect: checkAttach}), "CONNECT"),
		mutating("/mutating-pods", pods, admission.Chain(faultForOthers(pods), admission.Mutate(addInitContainer))),
		mutating("/mutating-pods-sidecar", pods, admission.Chain(faultForOthers(pods), sidecar)),
		validating("/configmaps", configMaps, admission.Chain(faultForOthers(configMaps), checkData(
			func(c *corev1.ConfigMap) (map[string]string, error) { return c.Data, nil },
			"the configmap contains unwanted key and value", "the configmap cannot be deleted because it contains unwanted key and value")),
			"CREATE", "UPDATE", "DELETE"),
		mutating("/mutating-configmaps", configMaps, admission.Chain(faultForOthers(configMaps), admission.Mutate(
			func(_ context.Context, c *corev1.ConfigMap) error { addStage(c.Data); return nil }))),
		validating("/custom-resource", anything, checkData(topLevelData,
			"the custom resource contains unwanted data", "the custom resource cannot be deleted because it contains unwanted key and value"),
			"CREATE", "UPDATE", "DELETE"),
		mutating("/mutating-custom-resource", anything, admission.Mutate(addStageToCustomResource)),
		validating("/crd", crds, admission.Chain(denyOthers(crds), admission.Validate(checkCRD))),
	}
}

type operation = admissionregistrationv1.OperationType

// The rules only say what a handler is for: the suites register the webhooks
// themselves.
func validating(path string, resource schema.GroupVersionResource, handler admission.Handler, operations ...operation) admission.Webhook {
	return admission.Validating(nameOf(path), admission.Rules(resource, operations...), handler, admission.AtPath(path))
}

func mutating(path string, resource schema.GroupVersionResource, handler admission.Handler) admission.Webhook {
	return admission.Mutating(nameOf(path), admission.Rules(resource), handler, admission.AtPath(path))
}

func nameOf(path string) string {
	return strings.ReplaceAll(path[1:], "/", "-") + ".testwebhook.sallyport.io"
}

// refusal is a denial with a message and no code, as the test webhook has them.
func refusal(message string) error {
	return admission.Deny(&apierrors.StatusError{ErrStatus: metav1.Status{Message: message}})
}

func refuseWith(status metav1.Status) admission.Handler {
	return admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.StatusResponse(status), nil
	})
}

// denyOthers denies what is about another resource; it goes in front of a handler.
func denyOthers(resource schema.GroupVersionResource) admission.Handler {
	return expect(resource, func(err error) (*admission.Response, error) {
		return admission.StatusResponse(metav1.Status{Message: err.Error()}), nil
	})
}

// faultForOthers gives no answer to it.
func faultForOthers(resource schema.GroupVersionResource) admission.Handler {
	return expect(resource, func(err error) (*admission.Response, error) { return nil, err })
}

func expect(want schema.GroupVersionResource, otherwise func(error) (*admission.Response, error)) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
		got := schema.GroupVersionResource(req.Resource)
		if got.GroupResource() != want.GroupResource() || want.Version != "*" && got.Version != want.Version {
			return otherwise(fmt.Errorf("expect resource to be %v", want))
		}
		return admission.Allowed(), nil
	})
}

// allowAfter takes its time, whatever time there is: the suites want to see how the API
// server deals with a webhook that is late. Handlers for other ends look at the context.
func allowAfter(delay time.Duration) admission.Handler {
	return admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		time.Sleep(delay)
		return admission.Allowed(), nil
	})
}

func addLabel(_ context.Context, object *metav1.PartialObjectMetadata) error {
	metav1.SetMetaDataLabel(&object.ObjectMeta, "added-label", "yes")
	return nil
}

// checkPod waits for so long after its time is up that nobody is there any more who could
// be answered.
func checkPod(late time.Duration) func(context.Context, *corev1.Pod) error {
	return func(ctx context.Context, pod *corev1.Pod) error {
		if pod.Labels[testKey] == "wait-forever" {
			<-ctx.Done()
			time.Sleep(late)
			return ctx.Err()
		}
		return checkLabelAndContainers(pod)
	}
}

func checkLabelAndContainers(pod *corev1.Pod) error {
	var unwanted []string
	if pod.Labels[testKey] == disallowed {
		unwanted = append(unwanted, "the pod contains unwanted label;")
	}
	if slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return strings.Contains(c.Name, disallowed) }) {
		unwanted = append(unwanted, "the pod contains unwanted container name;")
	}
	if len(unwanted) == 0 {
		return nil
	}
	return refusal(strings.Join(unwanted, " "))
}

func checkAttach(ctx context.Context, options *corev1.PodAttachOptions) error {
	const pod = "to-be-attached-pod"
	if admission.RequestFrom(ctx).Name == pod && options.Stdin && options.Container == "container1" {
		return refusal("attaching to pod '" + pod + "' is not allowed")
	}
	return nil
}

func addInitContainer(_ context.Context, pod *corev1.Pod) error {
	if pod.Name == "webhook-to-be-mutated" {
		pod.Spec.InitContainers = withContainer(pod.Spec.InitContainers, "webhook-added-init-container", "webhook-added-image")
	}
	return nil
}

func addSidecar(image string) func(context.Context, *corev1.Pod) error {
	return func(_ context.Context, pod *corev1.Pod) error {
		pod.Spec.Containers = withContainer(pod.Spec.Containers, "webhook-added-sidecar", image)
		return nil
	}
}

func withContainer(containers []corev1.Container, name, image string) []corev1.Container {
	if slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.Name == name }) {
		return containers
	}
	return append(containers, corev1.Container{Name: name, Image: image})
}

// checkData refuses objects by their data. The text goes into the reason of the
// status, not into its message: so do the suites expect it.
func checkData[T runtime.Object](dataOf func(T) (map[string]string, error), unwanted, kept string) admission.Handler {
	refuse := func(value, reason string) func(context.Context, T) error {
		return func(_ context.Context, object T) error {
			data, err := dataOf(object)
			if err == nil && data[testKey] == value {
				err = admission.Deny(&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReason(reason)}})
			}
			return err
		}
	}
	check := refuse(disallowed, unwanted)
	return admission.ValidateEach(admission.Checks[T]{
		Create: check,
		Update: func(ctx context.Context, _, object T) error { return check(ctx, object) },
		Delete: refuse("webhook-nondeletable", kept),
	})
}

func topLevelData(object *unstructured.Unstructured) (map[string]string, error) {
	data, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil { // its text holds the value
		return nil, refusal("data is not a map of strings")
	}
	return data, nil
}

// addStage answers to the first call with the first stage, and to the second with the
// second: the suites register it twice.
func addStage(data map[string]string) {
	switch {
	case data["mutation-stage-1"] == "yes":
		data["mutation-stage-2"] = "yes"
	case data["mutation-start"] == "yes":
		data["mutation-stage-1"] = "yes"
	}
}

func addStageToCustomResource(_ context.Context, object *unstructured.Unstructured) error {
	data, err := topLevelData(object)
	if err != nil || data == nil {
		return err
	}
	addStage(data)
	return unstructured.SetNestedStringMap(object.Object, data, "data")
}

func checkCRD(_ context.Context, crd *metav1.PartialObjectMetadata) error {
	if crd.Labels[testKey] == disallowed {
		return refusal("the crd contains unwanted label")
	}
	return nil
}
