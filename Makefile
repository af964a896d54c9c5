# SPDX-License-Identifier: Apache-2.0
# `make` prints what there is to make. Needed: Go 1.26, make, git. No C compiler.
# What a target does is in tools/ci, in Go and with tests.

# The release of Kubernetes that targets with an API server take, for example K8S=1.36.5; without it the
# newest. An unknown one is refused with a list of those that are known.
K8S ?=
# How many test packages `make test` runs at once on API servers, and how many tests of each.
PARALLEL ?= 4
# How often each property is tried in `make properties` and `make nightly`.
CHECKS ?= 10000
# How long each fuzz target runs in `make fuzz` and `make nightly`.
FUZZTIME ?= 1m
# How often a test that failed is run again.
RERUNS ?=
# Flags for `make bench`, `make scale` and `make bench-peers`, for example BENCH="-json".
BENCH ?=
# Flags for `make faults`, for example FAULTS="-rows rolling-restart,kill".
FAULTS ?=
# Flags for `make conformance`, for example CONFORMANCE="-runs 3".
CONFORMANCE ?=
# The version of `make image` and `make release`; without it that of the commit.
VERSION ?=
# The file with the private key that `make release` signs with.
SIGNING_KEY ?=
# With TAG=1, `make release` sets the tags.
TAG ?=
export K8S PARALLEL CHECKS FUZZTIME RERUNS BENCH FAULTS CONFORMANCE VERSION SIGNING_KEY TAG

ci = @CGO_ENABLED=0 go -C tools build -trimpath -tags=grpcnotrace -o "$(CURDIR)/bin/ci" ./ci && exec bin/ci
.PHONY: $(shell sed -n 's/^\([a-z][a-z -]*\):.*/\1/p' Makefile)

help: ## Print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

quickstart: ## Build sallyport, and ask it what a PodDefault does to a pod; no cluster, no control plane
	$(ci) $@

demo: ## Show PodDefault injection on a real API server, check it, and end; says first how long it takes
	$(ci) $@

demo-cloud: ## Show a sample cloud controller manager that labels volumes on a real API server, check it, and end
	$(ci) $@

dev: ## As demo, and stay up until Ctrl-C, with a KUBECONFIG to use
	$(ci) $@

build: ## Build bin/sallyport
	$(ci) $@

image: ## Make image tarballs for amd64 and arm64 in bin/release, without a container daemon
	$(ci) $@

release: ## Make everything of a release in bin/release: VERSION=v1.2.3 SIGNING_KEY=FILE; with TAG=1 tag it; nothing leaves the machine
	$(ci) $@

rehearse: ## Release HEAD to a proxy, a registry and a file server on loopback, and fetch, verify and install it from there; needs openssl
	$(ci) $@

upgrade: ## Replace the release before by HEAD and back, by chart, kustomize and binary, while pods are created; needs the history
	$(ci) $@

adopters: ## Try `go get` of the library in other projects, and run their webhook suites with their server and with ours
	$(ci) $@

controlplane: ## Download or build etcd, kube-apiserver and kubectl unless cached; print their folder
	$(ci) $@

check: ## Before each commit: format, vet, unit tests, import table, generated files; no API server
	$(ci) $@

test: ## For each change: check, other modules, and all that has to be true, on a real API server
	$(ci) $@

floor: ## Vet and test the library with the oldest Kubernetes that it supports
	$(ci) $@

properties: ## Properties with CHECKS random cases each (default 10000)
	$(ci) $@

apiserver: ## Tests on a real API server
	$(ci) $@

race-all: ## All tests under the race detector, on a real API server too; needs a C compiler
	$(ci) $@

screenshots: ## Take the pictures of the console's pages that docs/console.md has
	$(ci) $@

provider: ## Test the webhook that labels volumes with a real cloud provider and a fake cloud (first run: several minutes)
	$(ci) $@

fuzz: ## Run every fuzz target for FUZZTIME (default 1m) each
	$(ci) $@

bench: ## Measure sallyport against the floor and controller-runtime, in one run
	$(ci) $@

scale: ## Measure sallyport in a cluster of 100,000 PodDefaults; some 10 minutes
	$(ci) $@

bench-peers: ## Measure sallyport against Gatekeeper, Kyverno and Istio's injector, which are built from their modules the first time
	$(ci) $@

faults: ## Break things around sallyport while pods are created, for an hour; needs root and haproxy
	$(ci) $@

conformance: ## Run Kubernetes' own webhook suites against sallyport, in 2 minutes once all is built; needs root
	$(ci) $@

nightly: ## Hours: race detector over all, fuzzing, CHECKS cases of each property, older Kubernetes, a provider, conformance, faults; needs root and haproxy
	$(ci) $@

lint: ## Run golangci-lint as pinned in tools/lint/go.mod, and Kubernetes' linter over the API types and those of the configuration file
	$(ci) $@

generate: ## Generate deep copies, CustomResourceDefinitions, what config/ and charts/ have of them and of the rights, the console's pages, and docs/api.md
	$(ci) $@

verify: ## Check that all is formatted, tidy and generated as it should be, count exported names and the lines of packages, and compare the stable core with its record; changes nothing
	$(ci) $@

record-api: ## Record the API of the stable core, of which docs/compatibility.md tells
	$(ci) $@

# Stages of the above.
format vet unit modules race operator alone commits definitions templates reference generated:
	$(ci) $@

clean: ## Remove bin/ (the control plane's cache stays: `make controlplane` prints where)
	rm -rf bin
