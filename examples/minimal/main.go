// SPDX-License-Identifier: Apache-2.0

// Command minimal is the smallest application: one typed webhook. A test watches over the size
// of its binary.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
)

func main() {
	app, err := sallyport.New("minimal", sallyport.WithWebhooks(
		admission.Mutating("team.minimal.example.com",
			admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps")), admission.Mutate(setTeam)),
	))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(sallyport.Execute(app.Command()))
}

// setTeam names the team that a ConfigMap belongs to, where its author does not.
func setTeam(_ context.Context, object *corev1.ConfigMap) error {
	if object.Labels["team"] == "" {
		if object.Labels == nil {
			object.Labels = map[string]string{}
		}
		object.Labels["team"] = "platform"
	}
	return nil
}
