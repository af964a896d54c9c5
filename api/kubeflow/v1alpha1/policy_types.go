// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ConflictPolicy defines what happens on a conflict.
//
// +kubebuilder:validation:Enum=Kubeflow;Deny;KeepPod;Override;Skip
type ConflictPolicy string

// The conflict policies. An empty policy means Kubeflow: Deny, except that the fields which
// cannot conflict in Kubeflow's webhook still overwrite or give way.
const (
	ConflictKubeflow ConflictPolicy = "Kubeflow"
	ConflictDeny     ConflictPolicy = "Deny"
	ConflictKeepPod  ConflictPolicy = "KeepPod"
	ConflictOverride ConflictPolicy = "Override"
	ConflictSkip     ConflictPolicy = "Skip"
)

// Mode defines whether an object is applied or only audited.
//
// +kubebuilder:validation:Enum=Enforce;Audit
type Mode string

// The modes. An empty mode means Enforce.
const (
	ModeEnforce Mode = "Enforce"
	ModeAudit   Mode = "Audit"
)
