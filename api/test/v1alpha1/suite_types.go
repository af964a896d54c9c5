// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true

// Suite is a file of `sallyport test`: test cases for policies, and what they have in common.
// Paths are relative to the folder of the file.
type Suite struct {
	metav1.TypeMeta `json:",inline"`
	// Given holds for every case that does not say otherwise.
	Given `json:",inline"`
	Cases []Case `json:"cases"`
}

// Given is what a case starts from.
type Given struct {
	// Config is a file with a SallyportConfiguration: the enabled webhooks and their
	// settings. Default: that of `serve` without a file.
	Config string `json:"config,omitempty"`
	// With are files and folders with what webhooks read: PodDefaults, Namespaces, Datasets,
	// CustomResourceDefinitions. Those of the suite count for every case, in addition to its
	// own.
	With []string `json:"with,omitempty"`
	// Namespace of the objects that name none. Default default.
	Namespace string `json:"namespace,omitempty"`
	// Operation is CREATE, UPDATE or DELETE. Default CREATE.
	Operation string `json:"operation,omitempty"`
	// User makes the request. Default sallyport-test without groups.
	User *User `json:"user,omitempty"`
	// Validate says what becomes of unknown fields: strict, warn or ignore. Default strict.
	Validate string `json:"validate,omitempty"`
	// Warnings says what becomes of a warning that the case does not expect: Allow, or Fail.
	// Default Allow. Flag --fail-on-warnings.
	Warnings string `json:"warnings,omitempty"`
}

// User is the user of a request.
type User struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups,omitempty"`
}

// +kubebuilder:object:root=true

// CaseFile is case.yaml in a folder that is a test case.
type CaseFile struct {
	metav1.TypeMeta `json:",inline"`
	Case            `json:",inline"`
}

// Case is one test case.
type Case struct {
	// Name is unique in its suite.
	Name  string `json:"name"`
	Given `json:",inline"`
	// Objects are files and folders with the objects or AdmissionReviews to review. Of a
	// workload its pods are reviewed too.
	Objects []string `json:"objects"`
	// Old are files and folders with the objects as they were, for UPDATE.
	Old    []string    `json:"old,omitempty"`
	Expect Expectation `json:"expect"`
}

// Expectation is how a case must end.
type Expectation struct {
	// Allowed is false if a webhook must deny one of the objects. Default true.
	Allowed *bool `json:"allowed,omitempty"`
	// Message is a part of the denial's message.
	Message string `json:"message,omitempty"`
	// Warnings are parts of warnings: each must be given.
	Warnings []string `json:"warnings,omitempty"`
	// Want is a file with all objects that come out, in their order. `--update` writes it.
	Want string `json:"want,omitempty"`
	// Patch is a file with the JSON Patch (RFC 6902) of the only object. `--update` writes it.
	Patch string `json:"patch,omitempty"`
	// Objects are expectations of parts of the objects that come out.
	Objects []ObjectExpectation `json:"objects,omitempty"`
}

// ObjectExpectation is what must be true of an object that comes out.
type ObjectExpectation struct {
	// Object is Kind or Kind/name. It may be absent if only one object comes out.
	Object string `json:"object,omitempty"`
	// Values are by path, as kubectl's JSONPath: spec.containers[0].image or
	// {.spec.containers[?(@.name=="main")].image}. A path that finds several values has a
	// list of them.
	Values map[string]json.RawMessage `json:"values,omitempty"`
	// Absent are paths that must find nothing.
	Absent []string `json:"absent,omitempty"`
	// Origins say what wanted a change, by path: "PodDefault team-a/proxy".
	Origins map[string]string `json:"origins,omitempty"`
}
