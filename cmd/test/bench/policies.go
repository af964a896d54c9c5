// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"os"
	"path/filepath"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/imagepull"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/podtemplate"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/projectlimit"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/servicetype"
)

// policiesName is sallyport with the policies that testdata/policies.yaml configures.
const policiesName = "policies"

// Cases the limits refer to.
const (
	imagePullNothing   = "imagepull-nothing"
	imagePullChange    = "imagepull-change"
	imagePullValidate  = "imagepull-validate"
	serviceTypeAllowed = "servicetype-allowed"
	projectLimitStamp  = "projectlimit-stamp"
	projectLimitCount  = "projectlimit-count"
	podTemplateCreated = "podtemplate-created"
	podTemplateScaled  = "podtemplate-scaled"
)

//go:embed testdata/policies.yaml
var policies []byte

func policyStage(podDefaults int) stage {
	return stage{
		part:        partPolicies,
		podDefaults: podDefaults,
		servers:     []string{floorName, policiesName},
		cases: []benchCase{
			{id: imagePullNothing, name: "imagepull, notebook pod, nothing to set", review: "notebook-always", path: imagepull.MutatingPath},
			{id: imagePullChange, name: "imagepull, notebook pod, sets policies", review: "notebook", path: imagepull.MutatingPath, edit: alwaysPull},
			{id: imagePullValidate, name: "imagepull, notebook pod, validates", review: "notebook-always", path: imagepull.ValidatingPath},
			{id: serviceTypeAllowed, name: "servicetype, a service that may be", review: "service", path: servicetype.Path},
			{id: projectLimitStamp, name: "projectlimit, stamps a namespace", review: "namespace", path: projectlimit.StampPath, edit: stamp},
			{id: projectLimitCount, name: "projectlimit, counts", review: "namespace-stamped", path: projectlimit.CountPath},
			{id: podTemplateCreated, name: "podtemplate, Deployment of the notebook pod, 1 matches", review: deploymentCreated, path: podtemplate.Path},
			{id: podTemplateScaled, name: "podtemplate, the same, scaled", review: deploymentScaled, path: podtemplate.Path},
		},
	}
}

// writePolicies writes the configuration into a folder.
func writePolicies(dir string) (string, error) {
	file := filepath.Join(dir, "policies.yaml")
	return file, os.WriteFile(file, policies, 0o600)
}

func alwaysPull(pod map[string]any) {
	containers, _ := child(pod, "spec")["containers"].([]any)
	for _, c := range containers {
		if container, ok := c.(map[string]any); ok {
			container["imagePullPolicy"] = "Always"
		}
	}
}

func stamp(namespace map[string]any) {
	child(child(namespace, "metadata"), "annotations")[projectlimit.Annotation] = person.user
}
