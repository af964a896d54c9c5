// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"fmt"
	"strings"
)

// notebookPod returns the pod of a notebook server with a mesh sidecar as the API
// server sends it on creation: about 7 KB with managed fields.
func notebookPod() []byte {
	env := func(prefix string, n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf(`{"name":"%s_%02d","value":"value-of-%s-%02d"}`, prefix, i, strings.ToLower(prefix), i)
		}
		return strings.Join(out, ",")
	}
	return []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"notebook-0","generateName":"notebook-","namespace":"team-a","creationTimestamp":null,` +
		`"labels":{"app":"notebook","apps.kubernetes.io/pod-index":"0","controller-revision-hash":"notebook-6d9f5c7b8","notebook-name":"notebook","statefulset":"notebook","statefulset.kubernetes.io/pod-name":"notebook-0"},` +
		`"annotations":{"example.com/owner":"someone@example.com","sidecar.istio.io/inject":"true","prometheus.io/scrape":"true","prometheus.io/port":"8888"},` +
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"notebook","uid":"5f3c1d0e-8f0b-4e44-9b0f-0a9c1c0f2d11","controller":true,"blockOwnerDeletion":true}],` +
		`"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-08-01T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:controller-revision-hash":{},"f:notebook-name":{},"f:statefulset":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"5f3c1d0e-8f0b-4e44-9b0f-0a9c1c0f2d11\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"notebook\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"NB_PREFIX\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8888,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}}}}}}}]},` +
		`"spec":{"volumes":[{"name":"workspace","persistentVolumeClaim":{"claimName":"workspace-notebook"}},{"name":"dshm","emptyDir":{"medium":"Memory"}},{"name":"config","configMap":{"name":"notebook-config","defaultMode":420}},` +
		`{"name":"kube-api-access-x7k2p","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],` +
		`"initContainers":[{"name":"prepare","image":"registry.example.com/tools/prepare:1.4","command":["sh","-c","mkdir -p /home/jovyan/.cache && chown -R 1000:100 /home/jovyan"],"resources":{},"volumeMounts":[{"name":"workspace","mountPath":"/home/jovyan"}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],` +
		`"containers":[{"name":"notebook","image":"registry.example.com/notebooks/scipy:2026-07","command":["start-notebook.sh"],"args":["--ServerApp.base_url=/notebook/team-a/notebook","--ServerApp.token=","--ServerApp.allow_origin=*"],"workingDir":"/home/jovyan","ports":[{"name":"notebook-port","containerPort":8888,"protocol":"TCP"}],` +
		`"env":[{"name":"NB_PREFIX","value":"/notebook/team-a/notebook"},{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},` + env("SETTING", 12) + `],` +
		`"resources":{"limits":{"cpu":"4","memory":"16Gi","nvidia.com/gpu":"1"},"requests":{"cpu":"500m","memory":"4Gi","nvidia.com/gpu":"1"}},` +
		`"volumeMounts":[{"name":"workspace","mountPath":"/home/jovyan"},{"name":"dshm","mountPath":"/dev/shm"},{"name":"config","readOnly":true,"mountPath":"/etc/notebook"},{"name":"kube-api-access-x7k2p","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],` +
		`"livenessProbe":{"httpGet":{"path":"/notebook/team-a/notebook/api","port":8888,"scheme":"HTTP"},"initialDelaySeconds":10,"timeoutSeconds":1,"periodSeconds":30,"successThreshold":1,"failureThreshold":3},` +
		`"readinessProbe":{"httpGet":{"path":"/notebook/team-a/notebook/api","port":"notebook-port","scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},` +
		`"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":{"runAsUser":1000,"runAsNonRoot":true,"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}},` +
		`{"name":"proxy","image":"registry.example.com/mesh/proxy:1.27.3","args":["proxy","sidecar","--domain","$(POD_NAMESPACE).svc.cluster.local","--proxyLogLevel=warning","--concurrency","2"],"ports":[{"name":"http-envoy-prom","containerPort":15090,"protocol":"TCP"}],` +
		`"env":[{"name":"POD_NAMESPACE","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}},{"name":"INSTANCE_IP","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}}},` + env("PROXY", 8) + `],` +
		`"resources":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"100m","memory":"128Mi"}},"volumeMounts":[{"name":"kube-api-access-x7k2p","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],` +
		`"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":{"runAsUser":1337,"runAsGroup":1337,"runAsNonRoot":true,"readOnlyRootFilesystem":true}}],` +
		`"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default-editor","serviceAccount":"default-editor","securityContext":{"fsGroup":100},"hostname":"notebook-0","subdomain":"notebook","schedulerName":"default-scheduler",` +
		`"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},"status":{}}`)
}
