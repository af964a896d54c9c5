// SPDX-License-Identifier: Apache-2.0

// Package defaults sets the API server's defaults in objects of Kubernetes' own kinds.
package defaults

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Set sets the API server's defaults of an object, and reports whether it knows all of them:
// k8s.io/kubernetes/pkg/apis/{apps,batch,core}/v1/defaults.go.
func Set(object runtime.Object) bool {
	switch o := object.(type) {
	case *corev1.Pod:
		Pod(o)
	case *corev1.Namespace:
		Namespace(o)
	case *corev1.Service:
		service(&o.Spec)
	case *corev1.Secret:
		setDefault(&o.Type, corev1.SecretTypeOpaque)
	case *corev1.ConfigMap, *corev1.ServiceAccount, *policyv1.Eviction, *autoscalingv1.Scale:
	case *appsv1.Deployment:
		deployment(&o.Spec)
	case *appsv1.ReplicaSet:
		setPointer(&o.Spec.Replicas, 1)
		podSpec(&o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		statefulSet(&o.Spec)
	case *appsv1.DaemonSet:
		podSpec(&o.Spec.Template.Spec)
		return false
	case *batchv1.Job:
		podSpec(&o.Spec.Template.Spec)
		return false
	case *batchv1.CronJob:
		podSpec(&o.Spec.JobTemplate.Spec.Template.Spec)
		return false
	default:
		return false
	}
	return true
}

func deployment(s *appsv1.DeploymentSpec) {
	setPointer(&s.Replicas, 1)
	setDefault(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setPointer(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setPointer(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setPointer(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	setPointer(&s.RevisionHistoryLimit, 10)
	setPointer(&s.ProgressDeadlineSeconds, 600)
	podSpec(&s.Template.Spec)
}

func statefulSet(s *appsv1.StatefulSetSpec) {
	setDefault(&s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	setDefault(&s.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		setPointer(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		setPointer(&s.UpdateStrategy.RollingUpdate.Partition, 0)
	}
	setPointer(&s.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	setDefault(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setDefault(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setPointer(&s.Replicas, 1)
	setPointer(&s.RevisionHistoryLimit, 10)
	for i := range s.VolumeClaimTemplates {
		setPointer(&s.VolumeClaimTemplates[i].Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		setDefault(&s.VolumeClaimTemplates[i].Status.Phase, corev1.ClaimPending)
	}
	podSpec(&s.Template.Spec)
}

func service(s *corev1.ServiceSpec) {
	setDefault(&s.SessionAffinity, corev1.ServiceAffinityNone)
	if s.SessionAffinity == corev1.ServiceAffinityNone {
		s.SessionAffinityConfig = nil
	}
	setDefault(&s.Type, corev1.ServiceTypeClusterIP)
	for i := range s.Ports {
		setDefault(&s.Ports[i].Protocol, corev1.ProtocolTCP)
		if s.Ports[i].TargetPort == (intstr.IntOrString{}) || s.Ports[i].TargetPort == intstr.FromString("") {
			s.Ports[i].TargetPort = intstr.FromInt32(s.Ports[i].Port)
		}
	}
	external := s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer || s.Type == corev1.ServiceTypeClusterIP && len(s.ExternalIPs) > 0
	if external {
		setDefault(&s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if s.Type != corev1.ServiceTypeExternalName {
		setPointer(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if s.Type == corev1.ServiceTypeLoadBalancer {
		setPointer(&s.AllocateLoadBalancerNodePorts, true)
	}
}
