// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

func TestWhatEveryFieldMayHoldIsNoMistake(t *testing.T) {
	data, err := os.ReadFile("../testdata/valid.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		pd := &kubeflowv1alpha1.PodDefault{}
		if err := yaml.UnmarshalStrict(document, pd); err != nil {
			t.Fatal(err)
		}
		errs, _ := Spec(&pd.Spec, field.NewPath("spec"))
		if len(errs) > 0 {
			t.Errorf("%s: %v", pd.Name, errs)
		}
	}
}

// Values with the reported path.
func TestWhatBreaksEveryPodIsAMistake(t *testing.T) {
	const sidecar = "sidecars[0]."
	for spec, want := range map[string]string{
		`tolerations: [{key: a, operator: Exist}]`:                                                       "tolerations[0].operator",
		`tolerations: [{key: a, effect: Never}]`:                                                         "tolerations[0].effect",
		`tolerations: [{key: a, operator: Exists, value: b}]`:                                            "tolerations[0].value",
		`tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 1}]`:                              "tolerations[0].effect",
		`tolerations: [{operator: Equal}]`:                                                               "tolerations[0].operator",
		`tolerations: [{key: a b}]`:                                                                      "tolerations[0].key",
		`env: [{name: a=b}]`:                                                                             "env[0].name",
		`env: [{value: a}]`:                                                                              "env[0].name",
		`env: [{name: A, valueFrom: {secretKeyRef: {key: k}}}]`:                                          "env[0].valueFrom.secretKeyRef.name",
		`env: [{name: A, valueFrom: {secretKeyRef: {name: A_B, key: k}}}]`:                               "env[0].valueFrom.secretKeyRef.name",
		`env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: a/b}}}]`:                               "env[0].valueFrom.secretKeyRef.key",
		`env: [{name: A, valueFrom: {configMapKeyRef: {name: a}}}]`:                                      "env[0].valueFrom.configMapKeyRef.key",
		`env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.containers}}}]`:                          "env[0].valueFrom.fieldRef.fieldPath",
		`env: [{name: A, valueFrom: {resourceFieldRef: {resource: cpu}}}]`:                               "env[0].valueFrom.resourceFieldRef.resource",
		`env: [{name: A, valueFrom: {}}]`:                                                                "env[0].valueFrom",
		`env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`:                  "env[0].valueFrom",
		`envFrom: [{prefix: P}]`:                                                                         "envFrom[0]",
		`envFrom: [{configMapRef: {name: a}, secretRef: {name: b}}]`:                                     "envFrom[0]",
		`envFrom: [{secretRef: {}}]`:                                                                     "envFrom[0].secretRef.name",
		`volumes: [{name: a, emptyDir: {}, secret: {secretName: b}}]`:                                    "volumes[0]",
		`volumes: [{name: a, secret: {}}]`:                                                               "volumes[0].secret.secretName",
		`volumes: [{name: a, secret: {secretName: b, defaultMode: 512}}]`:                                "volumes[0].secret.defaultMode",
		`volumes: [{name: a, configMap: {name: b, items: [{key: c, path: ../d}]}}]`:                      "volumes[0].configMap.items[0].path",
		`volumes: [{name: a, hostPath: {path: /a, type: Folder}}]`:                                       "volumes[0].hostPath.type",
		`volumes: [{name: a, hostPath: {path: /a/..}}]`:                                                  "volumes[0].hostPath.path",
		`volumes: [{name: a, projected: {sources: [{secret: {name: b}, configMap: {name: c}}]}}]`:        "volumes[0].projected.sources[0]",
		`volumes: [{name: a, ephemeral: {}}]`:                                                            "volumes[0].ephemeral.volumeClaimTemplate",
		`volumes: [{name: a, emptyDir: {sizeLimit: "-1"}}]`:                                              "volumes[0].emptyDir.sizeLimit",
		`volumeMounts: [{name: a, mountPath: /a, subPath: ..}]`:                                          "volumeMounts[0].subPath",
		`volumeMounts: [{name: a, mountPath: /a, subPath: b, subPathExpr: c}]`:                           "volumeMounts[0].subPathExpr",
		`volumeMounts: [{name: a}]`:                                                                      "volumeMounts[0].mountPath",
		`volumeMounts: [{mountPath: /a}]`:                                                                "volumeMounts[0].name",
		`volumeMounts: [{name: a, mountPath: /a, mountPropagation: Both}]`:                               "volumeMounts[0].mountPropagation",
		`{volumes: [{name: a, emptyDir: {}}], volumeDevices: [{name: a, devicePath: /a}]}`:               "volumeDevices[0].name",
		`sidecars: [{name: a}]`:                                                                          sidecar + "image",
		`sidecars: [{name: a, image: a, imagePullPolicy: Sometimes}]`:                                    sidecar + "imagePullPolicy",
		`sidecars: [{name: a, image: a, ports: [{containerPort: 0}]}]`:                                   sidecar + "ports[0].containerPort",
		`sidecars: [{name: a, image: a, livenessProbe: {}}]`:                                             sidecar + "livenessProbe",
		`sidecars: [{name: a, image: a, livenessProbe: {tcpSocket: {port: 0}}}]`:                         sidecar + "livenessProbe.tcpSocket.port",
		`sidecars: [{name: a, image: a, lifecycle: {preStop: {}}}]`:                                      sidecar + "lifecycle.preStop",
		`sidecars: [{name: a, image: a, resources: {requests: {gpu: 1}}}]`:                               sidecar + "resources.requests[gpu]",
		`initContainers: [{name: a, image: a, readinessProbe: {exec: {command: [b]}}}]`:                  "initContainers[0].readinessProbe",
		`lifecycle: {postStart: {exec: {command: [a]}, sleep: {seconds: 1}}}`:                            "lifecycle.postStart",
		`containerSecurityContext: {runAsUser: -1}`:                                                      "containerSecurityContext.runAsUser",
		`containerSecurityContext: {seccompProfile: {type: Default}}`:                                    "containerSecurityContext.seccompProfile.type",
		`podSecurityContext: {fsGroup: -1}`:                                                              "podSecurityContext.fsGroup",
		`podSecurityContext: {seccompProfile: {type: Localhost}}`:                                        "podSecurityContext.seccompProfile.localhostProfile",
		`resources: {limits: {example.com/gpu: 500m}}`:                                                   "resources.limits[example.com/gpu]",
		`resourceClaims: [{name: A_, resourceClaimName: a}]`:                                             "resourceClaims[0].name",
		`resourceClaims: [{name: a}]`:                                                                    "resourceClaims[0]",
		`resourceClaims: [{name: a, resourceClaimName: a, resourceClaimTemplateName: b}]`:                "resourceClaims[0]",
		`resourceClaims: [{name: a, resourceClaimName: a/b}]`:                                            "resourceClaims[0].resourceClaimName",
		`resourceClaims: [{name: a, resourceClaimTemplateName: A_}]`:                                     "resourceClaims[0].resourceClaimTemplateName",
		`resourceClaims: [{name: a, resourceClaimName: a}, {name: a, resourceClaimName: b}]`:             "resourceClaims[1].name",
		`schedulingGates: [{name: a b}]`:                                                                 "schedulingGates[0].name",
		`schedulingGates: [{}]`:                                                                          "schedulingGates[0].name",
		`readinessGates: [{conditionType: a b}]`:                                                         "readinessGates[0].conditionType",
		`dnsPolicy: Cluster`:                                                                             "dnsPolicy",
		`activeDeadlineSeconds: 0`:                                                                       "activeDeadlineSeconds",
		`terminationMessagePolicy: Logs`:                                                                 "terminationMessagePolicy",
		`volumes: [{name: a, image: {}}]`:                                                                "volumes[0].image.reference",
		`volumes: [{name: a, image: {reference: r, pullPolicy: Sometimes}}]`:                             "volumes[0].image.pullPolicy",
		`volumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce]}}}}]`: "volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]",
		`env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: p}}}]`:                            "env[0].valueFrom.fileKeyRef.key",
		`{env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: K}}}], volumes: [{name: v, image: {reference: r}}]}`: "env[0].valueFrom.fileKeyRef.volumeName",
		`hostAliases: [{ip: 10.0.0.256}]`: "hostAliases[0].ip",
		`dnsConfig: {searches: ["a b"]}`:  "dnsConfig.searches[0]",
		`affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a b}]}}`:             "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
		`topologySpreadConstraints: [{topologyKey: a, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, minDomains: 1}]`: "topologySpreadConstraints[0].minDomains",
	} {
		errs, _ := Spec(parseSpec(t, spec), field.NewPath("spec"))
		if len(errs) != 1 || errs[0].Field != "spec."+want {
			t.Errorf("%s: %v, want one error at %s", spec, errs, want)
		}
	}
}

func TestNamesThatNoObjectCanHaveAreWarnedOf(t *testing.T) {
	for text, want := range map[string]string{
		`{volumes: [{name: v, configMap: {name: My_CM, optional: true}}]}`:                  "spec.volumes[0].configMap.name: no object can have this name, so it is always missing",
		`{volumes: [{name: v, secret: {secretName: My_Secret}}]}`:                           "spec.volumes[0].secret.secretName: no object can have this name: pods that get the volume wait for it forever",
		`{volumes: [{name: v, persistentVolumeClaim: {claimName: My_Claim}}]}`:              "spec.volumes[0].persistentVolumeClaim.claimName: no object can have this name: pods",
		`{volumes: [{name: v, projected: {sources: [{secret: {name: A}}]}}]}`:               "spec.volumes[0].projected.sources[0].secret.name: no object can have this name: pods",
		`{volumes: [{name: v, projected: {sources: [{configMap: {name: a, items: []}}]}}]}`: "",
	} {
		errs, warnings := Spec(parseSpec(t, text), field.NewPath("spec"))
		got := strings.Join(slices.DeleteFunc(warnings, func(w string) bool { return !strings.Contains(w, "can have this name") }), "\n")
		if len(errs) > 0 || !strings.Contains(got, want) || want == "" && got != "" || strings.Contains(got, "My_") {
			t.Errorf("%s: %v, %q", text, errs, got)
		}
	}
}
