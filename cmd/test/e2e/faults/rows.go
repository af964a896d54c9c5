// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A row is a fault, how often it is made, and what may come of it.
type row struct {
	name, what  string
	allowed     string // what may be lost, as the table says it
	rounds      int
	shortRounds int // 0: not in the short run
	run         func(ctx context.Context, c *cluster, rounds int, out *result) error
}

const (
	nothing     = "nothing"
	noneStored  = "failures; none stored un-injected"
	recovered   = "failures until 5 s after; none stored un-injected"
	beforeItsGo = "what was sent before its endpoint went; none stored un-injected"
)

// rows are all rows, in the order of the table.
var rows = []row{
	{"rolling-restart", "rolling restart of 3 replicas", nothing, 50, 2, rollingRestart},
	{"rolling-restart-haproxy", "rolling restart of 3 replicas behind haproxy", nothing, 10, 0, behindHAProxy},
	{"rolling-restart-url", "rolling restart of 3 replicas behind a URL", nothing, 10, 1, behindURL},
	{"leaf-rotation", "leaf rotation", nothing, 500, 6, leafRotation},
	{"ca-rotation", "CA rotation with 3 replicas", nothing, 20, 1, authorityRotation},
	{"kill", "kill -9 of one of 3 replicas, endpoint removed 1 s or 10 s later", beforeItsGo, 50, 1, killing},
	{"idle-termination", "idle replica, SIGTERM, first call 3 s later", nothing, 50, 2, idleTermination},
	{"freeze", "SIGSTOP of one of 3 replicas for 10 s", noneStored, 10, 1, freezing},
	{"leader-gone", "kill -9 of the leader, a PodDefault deleted and one changed", nothing, 3, 0, leaderGone},
	{"conflicting-poddefaults", "10,000 PodDefaults that all conflict, 256 MiB of memory", nothing, 2, 0, conflicting},
	{"apiserver-restart", "restart of kube-apiserver, with the policy of the backstop", recovered, 5, 1, apiServerRestart},
	{"etcd-pause", "etcd paused for 10 s", recovered, 5, 1, etcdPause},
	{"startup-race", "all replicas killed and started anew, among many PodDefaults", noneStored, 20, 2, startupRace},
	{"healing", "caBundle corrupted or configuration deleted by hand", "wrong for 5 s", 20, 2, healing},
	{"config-reload", "another configuration, or a bad one, under 500 creates/s", nothing, 20, 3, configReload},
	{"bad-input", "90 classes of bad input × 200", nothing, 1, 1, badInput},
	{"slowloris", "2,000 sockets that send nothing, or a byte a second", nothing, 1, 1, slowloris},
	{"hostile-merge", "pods and PodDefaults that would become gigabytes, while another namespace creates pods, 256 MiB of memory", nothing, 1, 1, hostileMerge},
	{"tenant-flood", "expensive pods of one namespace, ten at a time, while another creates pods", nothing, 1, 0, tenantFlood},
	{"slow-bodies", "16 bodies of 8 MiB that stall, to a server of 256 MiB", nothing, 1, 1, slowBodies},
	{"creates", "1,000 creates/s offered for 5 minutes, 3 replicas", nothing, 1, 0, manyCreates},
	{"day", "24 hours in half an hour: namespaces, PodDefaults, configurations, leaders and certificates come and go", nothing, 48, 0, day},
	{"connections", "12,000 connections to the port of metrics, 4,090 bodies that trickle, to a server of 256 MiB", nothing, 1, 0, connections},
}

// chooseRows returns the rows of those names, or all that belong to the run.
func chooseRows(names []string, short bool) ([]row, error) {
	var chosen []row
	for _, r := range rows {
		switch {
		case len(names) > 0 && slices.Contains(names, r.name),
			len(names) == 0 && (!short || r.shortRounds > 0):
			r.shortRounds = max(r.shortRounds, 1)
			chosen = append(chosen, r)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.name == name }) {
			return nil, fmt.Errorf("there is no row %q; choose from %s", name, strings.Join(rowNames(), ", "))
		}
	}
	return chosen, nil
}

func rowNames() []string {
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.name
	}
	return names
}
