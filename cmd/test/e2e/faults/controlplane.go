// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"os"
	"syscall"

	"github.com/sallyport-io/sallyport/test/lab"
)

// Addresses inside the enclosure, all local to its loopback interface.
const (
	replicaNetwork = "10.244.0.1" // /16: one address a replica
	serverAddress  = "10.243.0.1" // of kube-apiserver
	serviceNetwork = "10.96.0.1"  // /16: of Services; haproxy listens there in the place of kube-proxy
)

func startControlPlane(ctx context.Context, dir string) (*lab.ControlPlane, error) {
	return lab.StartControlPlane(ctx, dir, lab.ControlPlaneOptions{
		Assets: os.Getenv("KUBEBUILDER_ASSETS"), Address: serverAddress,
		Etcd: []string{"--quota-backend-bytes", "8000000000"}, Flags: apiServerFlags(true),
	})
}

// apiServerFlags are those of kube-apiserver. With routing it picks endpoints of a Service
// itself; without, it calls the Service's cluster IP.
func apiServerFlags(routing bool) []string {
	flags := []string{
		// The watch that sees what is stored must survive a restart: it comes from etcd, which
		// keeps everything.
		"--watch-cache-sizes=pods#0",
		"--delete-collection-workers=8", // cleaning up is nothing that a row is about
		"--etcd-compaction-interval=0",
	}
	if routing {
		flags = append(flags, "--enable-aggregator-routing=true")
	}
	return flags
}

// setRouting restarts the API server with or without aggregator routing.
func (c *cluster) setRouting(ctx context.Context, routing bool) error {
	c.cp.Flags = apiServerFlags(routing)
	return c.cp.RestartAPIServer(ctx, syscall.SIGKILL)
}
