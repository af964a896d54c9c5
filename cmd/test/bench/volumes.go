// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/fake"
	"k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/sallyport-io/sallyport/cloud"
	"github.com/sallyport-io/sallyport/internal/hosting/persistentvolumelabel"
)

const (
	cloudName        = "cloud"        // a webhook manager, as a provider makes one
	volumePatchName  = "canned patch" // its neighbour: the answer is always the same
	volumeReviewName = "volume"
	volumeLabelled   = "volume-labelled"

	volumeZone, volumeRegion = "north-1-a", "north-1"
)

// volumeStages are the labels of persistent volumes.
var volumeStages = []stage{{
	part:    partVolumes,
	servers: []string{floorName, volumePatchName, cloudName},
	cases:   []benchCase{{id: volumeLabelled, name: "volume, labels and node affinity", review: volumeReviewName, path: persistentvolumelabel.Path}},
	volumes: true,
}}

var volumeLabels = map[string]string{corev1.LabelTopologyZone: volumeZone, corev1.LabelTopologyRegion: volumeRegion}

// quickCloud labels all volumes alike, at once.
type quickCloud struct{ *fake.Cloud }

func (quickCloud) GetLabelsForVolume(context.Context, *corev1.PersistentVolume) (map[string]string, error) {
	return volumeLabels, nil
}

// serveCloud is a cloud controller manager without controllers, with the limits, metrics
// and checks that it has by default.
func serveCloud(args []string) error {
	o, err := parseServerFlags(cloudName, args)
	if err != nil {
		return err
	}
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		return err
	}
	webhooks, err := cloud.New(cloud.PersistentVolumeLabel("gce"))
	if err != nil {
		return err
	}
	initialize := func(*config.CompletedConfig) cloudprovider.Interface { return quickCloud{&fake.Cloud{}} }
	command, err := webhooks.Command(opts, initialize, nil, nil, cliflag.NamedFlagSets{}, nil)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(o.certDir, "cloud.kubeconfig") // it needs no API server
	if err := os.WriteFile(kubeconfig, []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:1"}}],`+
		`"contexts":[{"name":"a","context":{"cluster":"a"}}],"current-context":"a"}`), 0o600); err != nil {
		return err
	}
	command.SetArgs([]string{
		"--feature-gates=CloudControllerManagerWebhook=true", "--cloud-provider=quick", "--kubeconfig=" + kubeconfig, "--webhook-registration=None",
		"--webhook-secure-port=" + strconv.Itoa(o.port), "--webhook-tls-cert-file=" + filepath.Join(o.certDir, certFile),
		"--webhook-tls-private-key-file=" + filepath.Join(o.certDir, keyFile),
	})
	endWithParent()
	return command.Execute()
}

// serveVolumePatch is the floor with an answer that labels a volume.
func serveVolumePatch(args []string) error {
	patch := `[{"op":"add","path":"/metadata/labels","value":{"` + corev1.LabelTopologyRegion + `":"` + volumeRegion + `","` + corev1.LabelTopologyZone + `":"` + volumeZone +
		`"}},{"op":"add","path":"/spec/nodeAffinity","value":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"` + corev1.LabelTopologyRegion +
		`","operator":"In","values":["` + volumeRegion + `"]},{"key":"` + corev1.LabelTopologyZone + `","operator":"In","values":["` + volumeZone + `"]}]}]}}}]`
	answer := []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","response":{"allowed":true,"patchType":"JSONPatch","patch":"` +
		base64.StdEncoding.EncodeToString([]byte(patch)) + `"}}`)
	length := []string{strconv.Itoa(len(answer))}
	return serveCheaply(volumePatchName, args, func(_, _ []byte) ([]byte, []string) { return answer, length })
}

func benchVolume(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("100Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: name, FSType: "ext4"}},
			StorageClassName:       "standard",
		},
	}
}

// loadVolume is a review as kube-apiserver writes it: the object has its defaults, and
// managed fields of who created it.
func loadVolume() (review, error) {
	pv := benchVolume("disk-of-a-database")
	mode := corev1.PersistentVolumeFilesystem
	pv.UID, pv.CreationTimestamp = "5f7f4f0e-41f4-4f0c-9f54-6a0f6d7e9a51", metav1.Unix(1790000000, 0)
	pv.Spec.VolumeMode, pv.Spec.PersistentVolumeReclaimPolicy = &mode, corev1.PersistentVolumeReclaimRetain
	pv.Status.Phase = corev1.VolumePending
	now := pv.CreationTimestamp
	pv.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kubectl-create", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &now, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:accessModes":{},"f:capacity":{".":{},"f:storage":{}},"f:gcePersistentDisk":{".":{},"f:fsType":{},"f:pdName":{}},"f:persistentVolumeReclaimPolicy":{},"f:storageClassName":{},"f:volumeMode":{}}}`),
	}}
	raw, err := json.Marshal(pv)
	if err != nil {
		return review{}, err
	}
	request := &admissionv1.AdmissionRequest{
		UID:             "0c0d4b33-8b0a-4c3c-8d2d-3f8f5b1b7f2e",
		Kind:            metav1.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"},
		Resource:        metav1.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"},
		RequestKind:     &metav1.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"},
		RequestResource: &metav1.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"},
		Name:            pv.Name, Operation: admissionv1.Create,
		Object:  runtime.RawExtension{Raw: raw},
		Options: runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-create","fieldValidation":"Strict"}`)},
	}
	request.UserInfo.Username, request.UserInfo.Groups = "kubernetes-admin", []string{"system:masters", "system:authenticated"}
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	return review{volumeReviewName, body, string(request.UID), raw}, err
}

// verifyVolume checks that an answer labels the volume, and has pods follow it.
func verifyVolume(answer []byte, r review) error {
	envelope, err := decodeAnswer(answer)
	if err != nil {
		return err
	}
	if envelope.APIVersion == "admission.k8s.io/v1" && string(envelope.Response.UID) != r.uid {
		return fmt.Errorf("the answer has the UID %q, the review %q", envelope.Response.UID, r.uid)
	}
	patch, err := jsonpatch.DecodePatch(envelope.Response.Patch)
	if err != nil {
		return fmt.Errorf("the patch is not one: %w", err)
	}
	patched, err := patch.Apply(r.object)
	if err != nil {
		return fmt.Errorf("the patch does not apply: %w", err)
	}
	pv := &corev1.PersistentVolume{}
	if err := json.Unmarshal(patched, pv); err != nil {
		return err
	}
	return checkVolume(pv)
}

func checkVolume(pv *corev1.PersistentVolume) error {
	if pv.Labels[corev1.LabelTopologyZone] != volumeZone || pv.Labels[corev1.LabelTopologyRegion] != volumeRegion ||
		pv.Spec.NodeAffinity == nil || len(pv.Spec.NodeAffinity.Required.NodeSelectorTerms) != 1 {
		return errors.New("the volume is not labelled")
	}
	return nil
}

// measureVolumes creates volumes through the API server: with no webhook, and with each
// of the targets that label them registered. Turns alternate.
func measureVolumes(ctx context.Context, p schedule, site *site, targets []target, path string) ([]creation, error) {
	labelling := []*target{nil} // the first is without a webhook
	for i := range targets {
		if targets[i].Name != floorName {
			labelling = append(labelling, &targets[i])
		}
	}
	out := make([]creation, len(labelling))
	rates, latencies := make([][]float64, len(labelling)), make([][]time.Duration, len(labelling))
	for turn := range p.CreateTurns {
		for i := range labelling {
			i = (i + turn) % len(labelling)
			t := labelling[i]
			if t != nil {
				out[i].Server = t.Name
				var err error
				if out[i].Protocol, err = site.protocol(ctx, t.server); err != nil {
					return nil, err
				}
				if err := site.registerVolumes(ctx, *t, path); err != nil {
					return nil, err
				}
			}
			elapsed, more, err := site.cp.createVolumes(ctx, p.Creates, t != nil)
			if err != nil {
				return nil, fmt.Errorf("creating volumes with webhook %q: %w", out[i].Server, err)
			}
			if t != nil {
				if err := site.unregisterVolumes(ctx); err != nil {
					return nil, err
				}
			}
			out[i].Pods += len(more)
			rates[i] = append(rates[i], float64(len(more))/elapsed.Seconds())
			latencies[i] = append(latencies[i], more...)
		}
	}
	for i := range out {
		out[i].CreatesPerSecond, out[i].Rates = median(rates[i]), rates[i]
		out[i].P50Millis, out[i].P99Millis = millis(percentile(latencies[i], 50)), millis(percentile(latencies[i], 99))
	}
	return out, nil
}

const volumesConfiguration = "volumes.bench.sallyport.io"

// registerVolumes returns when the API server calls the target for volumes.
func (s *site) registerVolumes(ctx context.Context, t target, path string) error {
	url := t.server.url + path
	versions := []string{"v1"}
	if t.Name == volumePatchName {
		versions = []string{"v1beta1"} // its answer has no UID
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: volumesConfiguration},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:         volumesConfiguration,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: s.certificate},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumes"}},
			}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "volume-of-the-provider", Expression: "has(object.spec.gcePersistentDisk)"}},
			SideEffects:     new(admissionregistrationv1.SideEffectClassNone), FailurePolicy: new(admissionregistrationv1.Fail),
			TimeoutSeconds: new(int32(10)), AdmissionReviewVersions: versions,
		}},
	}
	if _, err := s.cp.clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, configuration, metav1.CreateOptions{}); err != nil {
		return err
	}
	return s.awaitVolumes(ctx, true)
}

func (s *site) unregisterVolumes(ctx context.Context) error {
	if err := s.cp.clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(ctx, volumesConfiguration, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return s.awaitVolumes(ctx, false)
}

// awaitVolumes creates volumes on dry run until they are labelled, or are not.
func (s *site) awaitVolumes(ctx context.Context, wanted bool) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		pv, err := s.cp.clients.CoreV1().PersistentVolumes().Create(ctx, benchVolume("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && (checkVolume(pv) == nil) == wanted, err
	})
}

// createVolumes creates n volumes, each of a disk of its own, checks them, and deletes
// them again.
func (cp *controlPlane) createVolumes(ctx context.Context, n int, labelled bool) (elapsed time.Duration, latencies []time.Duration, err error) {
	volumes := cp.clients.CoreV1().PersistentVolumes()
	caused, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	latencies = make([]time.Duration, n)
	var next atomic.Int64
	var group sync.WaitGroup
	started := time.Now()
	for range creators {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && caused.Err() == nil; i = int(next.Add(1)) - 1 {
				began := time.Now()
				pv, err := volumes.Create(caused, benchVolume(fmt.Sprintf("disk-%d-%d", started.UnixNano(), i)), metav1.CreateOptions{})
				if err == nil && (checkVolume(pv) == nil) != labelled {
					err = fmt.Errorf("volume %s: labels there: %t, wanted: %t", pv.Name, !labelled, labelled)
				}
				if err != nil {
					cancel(err)
					return
				}
				latencies[i] = time.Since(began)
			}
		})
	}
	group.Wait()
	elapsed = time.Since(started)
	if err := context.Cause(caused); err != nil {
		return 0, nil, err
	}
	list, err := volumes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, nil, err
	}
	for i := range list.Items { // no controller is there that would take the finalizer away
		pv := &list.Items[i]
		pv.Finalizers = nil
		if _, err := volumes.Update(ctx, pv, metav1.UpdateOptions{}); err != nil {
			return 0, nil, err
		}
	}
	return elapsed, latencies, volumes.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// volumeRate is how many volumes are created in a second with a canned patch, against the
// cloud's webhook: what is promised is at least 0.9 of the rate.
func volumeRate(r *results) (float64, bool) {
	rates := map[string]float64{}
	for _, c := range r.Volumes {
		rates[c.Server] = c.CreatesPerSecond
	}
	if rates[cloudName] == 0 || rates[volumePatchName] == 0 {
		return 0, false
	}
	return rates[volumePatchName] / rates[cloudName], true
}
