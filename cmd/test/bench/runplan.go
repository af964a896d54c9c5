// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// runPlan measures everything. binary is sallyport's; empty means to build it.
func runPlan(ctx context.Context, p schedule, binary string, progress progress) (_ *results, err error) {
	// The client shares the processors with the servers: let it collect garbage rarely.
	defer debug.SetGCPercent(debug.SetGCPercent(400))

	dir, err := os.MkdirTemp("", "sallyport-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	site := &site{dir: dir, sallyport: binary, podDefaults: filepath.Join(dir, "poddefaults.json"), peers: map[string]installedPeer{}}
	if site.sallyport == "" && p.Only != partVolumes {
		progress.sayf("building sallyport")
		site.sallyport = filepath.Join(dir, "sallyport")
		if err := buildSallyport(ctx, site.sallyport); err != nil {
			return nil, err
		}
	}
	if site.certificate, err = writeCertificate(dir); err != nil {
		return nil, err
	}
	progress.sayf("starting etcd and kube-apiserver")
	if site.cp, err = startControlPlane(ctx, dir); err != nil {
		return nil, err
	}
	defer site.cp.Kill()

	results := &results{Quick: !p.Judge, Peers: map[string]string{}}
	if results.Machine, err = describe(p, site.cp); err != nil {
		return nil, err
	}
	if p.measures(partCommand) {
		progress.sayf("sallyport version, %d times", p.ColdStarts)
		if results.ColdStartMillis, err = measureColdStart(ctx, site.sallyport, p.ColdStarts); err != nil {
			return nil, err
		}
	}
	stages, err := planStages(p)
	if err != nil {
		return nil, err
	}
	present := 0
	for _, s := range stages {
		if !p.measures(s.part) {
			continue
		}
		if err := site.grow(ctx, present, s.podDefaults, progress); err != nil {
			return nil, err
		}
		present = s.podDefaults
		if err := site.runStage(ctx, p, s, results, progress); err != nil {
			return nil, err
		}
	}
	for name, peer := range site.peers {
		results.Peers[name] = peer.version
	}
	if p.measures(partConversion) {
		if results.Listings, err = measureLists(ctx, p, site, progress); err != nil {
			return results, err
		}
	}
	if p.measures(partBackstop) {
		results.Backstop, err = measureBackstop(ctx, p, site, progress)
	}
	return results, err
}

// buildSallyport builds the command of the module that the working directory is in, with the
// flags of a release: another binary has more pages, which count in its resident memory.
func buildSallyport(ctx context.Context, target string) error {
	_, err := goCommand(ctx, "", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", target, "github.com/sallyport-io/sallyport/cmd/sallyport")
	return err
}

// goCommand runs the go command in the folder of a module; empty is the working directory.
func goCommand(ctx context.Context, folder string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = folder
	if folder != "" { // a module that is not in go.work
		command.Env = append(os.Environ(), "GOWORK=off")
	}
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%w\n%s", err, failed.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

func describe(p schedule, cp *controlPlane) (machine, error) {
	m := machine{
		CPUs:       runtime.NumCPU(),
		OS:         runtime.GOOS + "/" + runtime.GOARCH,
		Go:         runtime.Version(),
		APIServer:  cp.version,
		Rounds:     p.Rounds,
		WindowMS:   p.Window.Milliseconds(),
		ReviewSize: sizes{},
	}
	for _, recording := range recordings {
		r, err := loadReview(recording.name)
		if err != nil {
			return m, err
		}
		m.ReviewSize[r.name] = len(r.body)
	}
	return m, nil
}

// grow takes the namespace from one number of PodDefaults to another.
func (s *site) grow(ctx context.Context, from, to int, progress progress) error {
	all, err := manyPodDefaults(to)
	if err != nil {
		return err
	}
	if to == from {
		return nil
	}
	progress.sayf("creating %s PodDefaults", thousands(to-from))
	return createPodDefaults(ctx, s.cp.objects, all[from:], progress)
}

// runStage starts the servers, measures, and stops them.
func (s *site) runStage(ctx context.Context, p schedule, stage stage, results *results, progress progress) (err error) {
	if stage.prepare != nil {
		if err := stage.prepare(ctx, s, p, progress); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, removeFurther(ctx, s.cp.objects, stage.podDefaults)) }()
	}
	podDefaults, err := writePodDefaults(ctx, s.cp.objects, s.podDefaults)
	if err != nil {
		return err
	}
	if n := len(podDefaults.Items); stage.prepare == nil && n != stage.podDefaults {
		return fmt.Errorf("the namespace has %d PodDefaults, and its rows are for %d", n, stage.podDefaults)
	}
	if stage.starts > 0 {
		if err := s.measureStarts(ctx, stage, results, progress); err != nil {
			return err
		}
	}
	if stage.idle {
		progress.sayf("starting %s to see what it takes when it has nothing to do", sallyportName)
		if err := s.measureIdle(ctx, p.Idle, results); err != nil {
			return err
		}
	}
	if len(stage.servers) == 0 {
		return nil
	}
	if stage.scale {
		if results.Scale, err = s.measureScale(ctx, p, progress); err != nil {
			return err
		}
		// The leader has written statuses.
		if podDefaults, err = writePodDefaults(ctx, s.cp.objects, s.podDefaults); err != nil {
			return err
		}
	}
	targets := make([]target, 0, len(stage.servers))
	defer func() {
		for _, t := range targets {
			t.close()
			t.stop()
		}
	}()
	for _, name := range stage.servers {
		srv, err := s.start(ctx, name)
		if err != nil {
			return err
		}
		progress.sayf("%s is ready after %s", name, srv.ready.Round(time.Millisecond))
		targets = append(targets, target{srv, newLoader(srv.url, s.trust())})
	}
	if stage.exports {
		progress.sayf("creating pods through the API server, %d turns of %d with %s and with policies", p.CreateTurns, p.Creates, sallyportName)
		if results.Exported, err = measureExported(ctx, p, s, targets[0], podDefaults); err == nil && results.Exported == nil {
			progress.sayf("not measured: this release of Kubernetes has no mutating policies in version v1")
		}
		return err
	}
	if !stage.burst { // of that one the creations tell
		progress.sayf("%d case(s) on %d servers, %d rounds of %s each", len(stage.cases), len(targets), p.Rounds, p.Window)
		measurements, err := measureCases(ctx, p, targets, stage.cases, podDefaults)
		if err != nil {
			return err
		}
		results.Reviews = append(results.Reviews, measurements...)
	}
	if stage.volumes {
		progress.sayf("creating volumes through the API server, %d turns of %d without and with each server", p.CreateTurns, p.Creates)
		results.Volumes, err = measureVolumes(ctx, p, s, targets, stage.cases[0].path)
		return err
	}
	if len(stage.freshness) > 0 {
		progress.sayf("creating pods through the API server with each freshness, %d turns of %d", p.CreateTurns, p.Creates)
		rows, err := measureFreshness(ctx, p, s, targets, stage)
		results.Freshness = append(results.Freshness, rows...)
		return err
	}
	if stage.overload {
		progress.sayf("creating %d pods a second, and %d times as many, with each freshness, %d turns of %s", usualLoad, loads[len(loads)-1], p.CreateTurns, p.Arrivals)
		results.Overload, err = measureOverload(ctx, p, s, targets)
		return err
	}
	if stage.burst {
		progress.sayf("creating pods through the API server, %d turns of %d by %d writers", p.CreateTurns, p.Burst, writers)
		results.Burst, err = measureCreations(ctx, p, s, targets, stage.cases[0], p.Burst, writers)
		return err
	}
	if !stage.creates {
		return nil
	}
	progress.sayf("creating pods through the API server, %d turns of %d without and with each server", p.CreateTurns, p.Creates)
	results.Creations, err = measureCreations(ctx, p, s, targets, stage.cases[0], p.Creates, creators)
	return err
}
