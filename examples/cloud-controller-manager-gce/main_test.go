// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider-gcp/providers/gce"
	"k8s.io/cloud-provider/app/config"

	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
)

const (
	project = "a-project"
	region  = "us-central1"
)

// backend is the part of Google's compute API that knows disks: "zonal" is in a zone,
// "regional" in two.
func backend(t *testing.T, asked *atomic.Int32) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		zone := func(name string) string { return "https://compute/projects/" + project + "/zones/" + name }
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/zones/us-central1-b/disks/zonal"):
			asked.Add(1)
			_ = json.NewEncoder(w).Encode(map[string]any{"name": "zonal", "type": "pd-ssd", "zone": zone("us-central1-b")})
		case strings.HasSuffix(path, "/regions/"+region+"/disks/regional"):
			asked.Add(1)
			_ = json.NewEncoder(w).Encode(map[string]any{
				"name": "regional", "type": "pd-ssd", "region": "https://compute/projects/" + project + "/regions/" + region,
				"replicaZones": []string{zone("us-central1-b"), zone("us-central1-c")},
			})
		case strings.HasSuffix(path, "/projects/"+project):
			_ = json.NewEncoder(w).Encode(map[string]any{"name": project})
		default:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": 404, "message": "not found"}})
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// review asks about the creation of a volume.
func review(t *testing.T, url string, pv *corev1.PersistentVolume) *admissionv1.AdmissionResponse {
	t.Helper()
	raw, err := json.Marshal(pv)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}, Object: runtime.RawExtension{Raw: raw},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		resp, err := client.Post(url, "application/json", bytes.NewReader(body))
		if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
			if time.Now().After(deadline) {
				t.Fatalf("nobody answers: %v", err)
			}
			continue
		}
		answer, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		out := &admissionv1.AdmissionReview{}
		if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(answer, out) != nil {
			t.Fatalf("%d %s %v", resp.StatusCode, answer, err)
		}
		return out.Response
	}
}

func TestVolumesOfGoogleAreLabelledByGooglesProvider(t *testing.T) {
	// One of the provider's clients insists on credentials, which nobody uses.
	credentials := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(credentials, []byte(`{"type":"authorized_user","client_id":"a","client_secret":"b","refresh_token":"c"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", credentials)
	var asked atomic.Int32
	compute := backend(t, &asked)
	initialize := func(*config.CompletedConfig) cloudprovider.Interface {
		made, err := gce.CreateGCECloud(&gce.CloudConfig{
			APIEndpoint: compute.URL + "/compute/v1/", ProjectID: project, Region: region, Regional: true, Zone: "us-central1-b",
			ManagedZones: []string{"us-central1-b", "us-central1-c"}, NetworkURL: "https://compute/network", SubnetworkURL: "https://compute/subnetwork",
			TokenSource: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "t"}), AlphaFeatureGate: gce.NewAlphaFeatureGate(nil),
		})
		if err != nil {
			t.Error(err)
			return nil
		}
		return made
	}
	stop, ended := make(chan struct{}), make(chan error, 1)
	command, err := newCommand(initialize, stop)
	if err != nil {
		t.Fatal(err)
	}
	port := freeport.For(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig") // of an API server that is not there
	if err := os.WriteFile(kubeconfig, []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:1"}}],`+
		`"contexts":[{"name":"a","context":{"cluster":"a"}}],"current-context":"a"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs([]string{
		"--cloud-provider=gce", "--kubeconfig=" + kubeconfig, "--controllers=-*", "--webhooks=*", "--feature-gates=CloudControllerManagerWebhook=true",
		fmt.Sprint("--webhook-secure-port=", port), "--webhook-registration=None", "--webhook-drain-min=0s", "--webhook-drain-timeout=0s",
	})
	go func() { ended <- command.Execute() }()
	t.Cleanup(func() {
		close(stop)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	url := fmt.Sprintf("https://127.0.0.1:%d/mutate-persistentvolumelabel", port)
	volume := func(disk string) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: disk}}
		pv.Spec.GCEPersistentDisk = &corev1.GCEPersistentDiskVolumeSource{PDName: disk}
		return pv
	}
	for disk, want := range map[string]string{"zonal": "us-central1-b", "regional": "us-central1-"} {
		before := asked.Load()
		for range 2 { // the second time it is remembered
			if resp := review(t, url, volume(disk)); !resp.Allowed || !strings.Contains(string(resp.Patch), want) || !strings.Contains(string(resp.Patch), region) {
				t.Errorf("%s: %+v %s", disk, resp.Result, resp.Patch)
			}
		}
		if asked.Load()-before > 2 { // a regional disk is looked for first
			t.Errorf("%s: Google is asked %d times", disk, asked.Load()-before)
		}
	}
	if resp := review(t, url, volume("lost")); resp.Allowed || !strings.Contains(resp.Result.Message, "error querying GCE PD volume lost") {
		t.Errorf("%+v %s", resp.Result, resp.Patch)
	}
	// The provider panics for volumes that are not its own: it is not asked.
	foreign := &corev1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "ebs"}}
	foreign.Spec.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}
	if resp := review(t, url, foreign); !resp.Allowed || len(resp.Patch) > 0 {
		t.Errorf("%+v %s", resp.Result, resp.Patch)
	}
}
