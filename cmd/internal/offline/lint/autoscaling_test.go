// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"
	"testing"
)

func TestAnAutoscalerDecidesHowManyReplicasThereAre(t *testing.T) {
	data := example(t, "workload-replicas").File("pass.yaml")
	scaler := func(target, bounds string) string {
		return "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {namespace: hooks-system, name: more}\n" +
			"spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: " + target + "}, maxReplicas: 9" + bounds + "}\n"
	}
	for _, tc := range []struct {
		name, replicas, scaler, want string
	}{
		{"two, and none that scales", "  replicas: 2\n", "", ""},
		{"the default, and none that scales", "", "", "Deployment/hooks-system/hooks: Deployment hooks-system/hooks has 1 replica"},
		{"the default, and at least two", "", scaler("hooks", ", minReplicas: 2"), ""},
		{"one at the moment, and at least two", "  replicas: 1\n", scaler("hooks", ", minReplicas: 2"), ""},
		{"two at the moment, and at least one", "  replicas: 2\n", scaler("hooks", ", minReplicas: 1"), "HorizontalPodAutoscaler/hooks-system/more: Deployment hooks-system/hooks may have 1 replica"},
		{"two at the moment, and no least number", "  replicas: 2\n", scaler("hooks", ""), "HorizontalPodAutoscaler/hooks-system/more: Deployment hooks-system/hooks may have 1 replica"},
		{"another one is scaled", "  replicas: 2\n", scaler("other", ""), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.Replace(string(data), "  replicas: 2\n", tc.replicas, 1) + tc.scaler
			in, err := ReadFiles(objects(t, "files", []byte(text)))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range Run(in, Options{Now: then, Rules: []string{"workload-replicas"}}).Findings {
				got = append(got, f.Object+": "+f.Message)
			}
			if strings.Join(got, "\n") != tc.want {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}
