// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

func TestOptionsOfTheManagerChangeInTheirOrder(t *testing.T) {
	period := time.Hour
	options, err := changed(manager.Options{LeaderElectionID: "a"}, []func(*manager.Options){
		func(o *manager.Options) {
			o.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{"shop": {}}}
		},
		func(o *manager.Options) { o.Cache.SyncPeriod = &period },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := options.Cache.DefaultNamespaces["shop"]; !ok || options.Cache.SyncPeriod != &period || options.LeaderElectionID != "a" {
		t.Errorf("got %+v", options)
	}
}

func TestWhatIsTheApplicationsCannotBeChanged(t *testing.T) {
	second := time.Second
	for field, change := range map[string]func(*manager.Options){
		"Metrics.BindAddress":     func(o *manager.Options) { o.Metrics.BindAddress = ":1" },
		"HealthProbeBindAddress":  func(o *manager.Options) { o.HealthProbeBindAddress = ":2" },
		"PprofBindAddress":        func(o *manager.Options) { o.PprofBindAddress = ":3" },
		"LeaderElection is":       func(o *manager.Options) { o.LeaderElection = false },
		"LeaderElectionID":        func(o *manager.Options) { o.LeaderElectionID = "b" },
		"LeaderElectionNamespace": func(o *manager.Options) { o.LeaderElectionNamespace = "b" },
		"LeaderElectionConfig":    func(o *manager.Options) { o.LeaderElectionConfig = &rest.Config{} },
		"LeaseDuration":           func(o *manager.Options) { o.RetryPeriod = &second },
	} {
		t.Run(field, func(t *testing.T) {
			_, err := changed(manager.Options{LeaderElection: true, LeaderElectionID: "a"}, []func(*manager.Options){change})
			if err == nil || !strings.Contains(err.Error(), "WithManagerOptions: "+field) {
				t.Errorf("got %v", err)
			}
		})
	}
}
