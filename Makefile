# SPDX-License-Identifier: Apache-2.0
# `make` prints what there is to make. Needed: Go 1.26, make, git. No C compiler.

SHELL := /bin/sh
GO ?= go

# How long each fuzz target runs in `make test` and `make fuzz`.
FUZZTIME ?= 5s
# Flags for `make bench`, for example BENCH="-json".
BENCH ?=
# Flags for `make faults`, for example FAULTS="-rows rolling-restart,kill".
FAULTS ?=
# Flags for `make conformance`, for example CONFORMANCE="-runs 3".
CONFORMANCE ?=

# The release of Kubernetes that the targets test, demo, dev, bench, faults, conformance and
# controlplane take, for example K8S=1.36.3; without it the newest. An unknown one is
# refused with a list of those that are known.
K8S ?=

# The folder with etcd, kube-apiserver and kubectl, for `make conformance` also with
# kube-controller-manager, kube-scheduler, kwok and e2e.test. If it is set, none is built.
ifneq ($(KUBEBUILDER_ASSETS),)
export KUBEBUILDER_ASSETS := $(abspath $(KUBEBUILDER_ASSETS))
endif

# What of the control plane is needed; tests need a scheduler, and nodes, too.
components = etcd kube-apiserver kubectl
test: components += kube-scheduler kwok
# Builds what is missing; prints progress on stderr, the folder as its last line.
controlplane = (cd test/controlplane && $(GO) run . $(if $(K8S),-kubernetes "$(K8S)") $(components))
# For the beginning of a recipe's command: builds the control plane and sets
# KUBEBUILDER_ASSETS for the rest.
with_control_plane = assets=$$( $(controlplane) ) || exit 1; \
	KUBEBUILDER_ASSETS=$$(printf '%s\n' "$$assets" | tail -n 1); export KUBEBUILDER_ASSETS

# The race detector needs cgo, so tests run with it only where there is a compiler.
race = $$([ "$$($(GO) env CGO_ENABLED)" = 1 ] && command -v "$$($(GO) env CC | cut -d' ' -f1)" >/dev/null 2>&1 && echo -race)

# A cloud provider's client libraries take minutes to compile, so `make provider` tests it.
provider_module = ./examples/cloud-controller-manager-gce

# Folders of all modules of the repository, of those that are not the main one, and
# of those that have packages.
modules = $$(find . -name .git -prune -o -name bin -prune -o -name go.mod -print | xargs -n1 dirname | sort)
other_modules = $$(for m in $(modules); do \
	[ "$$m" != . ] && [ "$$m" != $(provider_module) ] && [ -n "$$($(GO) -C "$$m" list ./... 2>/dev/null)" ] && echo "$$m"; done)

# The version of `make image` and `make release`.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null | sed 's/^[^v]/v0.0.0-&/')
release_folder = $(CURDIR)/bin/release
deploy_tool = $(GO) tool -modfile=$(CURDIR)/tools/deploy/go.mod

# Without the tag gRPC, which a client of webhooks for authentication needs, brings pages with
# traces that nobody serves, and templates, for which the linker keeps all methods: 18 MB.
build_command = CGO_ENABLED=0 $(GO) build -trimpath -tags grpcnotrace

.PHONY: help
help: ## Print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

.PHONY: demo
demo: build ## Show PodDefault injection on a real API server, check it, and end (first run: about 6 minutes)
	@$(build_command) -o bin/demo ./test/demo
	@$(with_control_plane); exec bin/demo

.PHONY: demo-cloud
demo-cloud: ## Show a sample cloud controller manager that labels volumes on a real API server, check it, and end
	@$(build_command) -o bin/demo ./test/demo
	@$(build_command) -o bin/cloud-controller-manager ./examples/cloud-controller-manager
	@$(with_control_plane); exec bin/demo -cloud

.PHONY: dev
dev: build ## The same, and stay up until Ctrl-C, with a KUBECONFIG to use
	@$(build_command) -o bin/demo ./test/demo
	@$(with_control_plane); exec bin/demo -stay

.PHONY: build
build: ## Build bin/sallyport
	@$(build_command) -o bin/sallyport ./cmd/sallyport

.PHONY: image
image: ## Make image tarballs for amd64 and arm64 in bin/release, without a container daemon
	@$(GO) -C tools/release run . image -version "$(VERSION)" -top "$(CURDIR)" -out "$(release_folder)"

.PHONY: release
release: ## Make everything of a release in bin/release: VERSION=v1.2.3 (else what git describes)
	@rm -rf "$(release_folder)" && mkdir -p "$(release_folder)"
	@$(GO) -C tools/release run . binaries -version "$(VERSION)" -top "$(CURDIR)" -out "$(release_folder)"
	@$(MAKE) --no-print-directory image VERSION="$(VERSION)"
	@version="$(VERSION)"; $(deploy_tool) helm package charts/sallyport --version "$${version#v}" --app-version "$$version" --destination "$(release_folder)"
	@for name in base cert-manager kubeflow static; do \
		$(deploy_tool) kustomize build config/$$name | sed 's|image: sallyport:dev|image: sallyport:$(VERSION)|' > "$(release_folder)/sallyport-$$name.yaml" || exit 1; done
	@sed 's|image: sallyport:dev|image: sallyport:$(VERSION)|' config/static/host/sallyport.yaml > "$(release_folder)/sallyport-static-pod.yaml"
	@cp config/static/host/admission.yaml "$(release_folder)/sallyport-static-admission.yaml"
	@cp config/components/monitoring/dashboard.json "$(release_folder)/sallyport-dashboard.json"
	@$(GO) -C tools/release run . checksums -out "$(release_folder)"
	@ls "$(release_folder)"

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver and kubectl unless cached; print their folder
	@$(controlplane)

.PHONY: test
test: build ## Vet, unit tests, end-to-end tests on a real API server, every fuzz target for FUZZTIME
	$(GO) vet ./...
	@for m in $(other_modules); do \
		echo "$(GO) -C $$m vet ./... && $(GO) -C $$m test ./..."; \
		$(GO) -C "$$m" vet ./... && $(GO) -C "$$m" test ./... || exit 1; done
	@$(with_control_plane); race=$(race); set -e; \
	all=$$($(GO) list ./...); unit=$$(printf '%s\n' "$$all" | grep -v '/test/'); whole=$$(printf '%s\n' "$$all" | grep '/test/'); \
	echo "$(GO) test $$race (packages)"; $(GO) test $$race -timeout 20m $$unit; \
	echo "$(GO) test (properties, with thousands of random cases, which takes too long under the race detector)"; \
	$(GO) test ./jsonpatch; $(GO) test ./webhooks/poddefault -rapid.checks=10000; $(GO) test ./cmd/sallyport -run TestPoliciesWebhookAndReviewAgree; \
	echo "$(GO) test -p 1 ./test/..."; $(GO) test -p 1 -timeout 20m $$whole
	@$(MAKE) --no-print-directory fuzz

.PHONY: provider
provider: ## Test the webhook that labels volumes with a real cloud provider and a fake cloud (first run: several minutes)
	$(GO) -C $(provider_module) vet ./... && $(GO) -C $(provider_module) test ./...

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 5s) each
	@set -e; dirs=$$($(GO) list -f '{{.Dir}}' ./...); for dir in $$dirs; do \
		grep -qs '^func Fuzz' "$$dir"/*_test.go || continue; \
		listed=$$(cd "$$dir" && $(GO) test -list '^Fuzz' .); \
		for target in $$(printf '%s\n' "$$listed" | grep '^Fuzz'); do \
			echo "$$target in $${dir#"$(CURDIR)"/}"; \
			log=$$(mktemp); \
			(cd "$$dir" && $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) .) >"$$log" 2>&1 || { \
				cat "$$log"; grep -q 'context deadline exceeded' "$$log" && ! grep -q 'Failing input' "$$log" && \
				echo "the time was up in the middle of an input, and none failed: go on" || { rm -f "$$log"; exit 1; }; }; \
			tail -n 1 "$$log"; rm -f "$$log"; \
		done; done

.PHONY: bench
bench: build ## Measure sallyport against the floor and controller-runtime, in one run
	@$(build_command) -o bin/bench ./test/bench
	@$(with_control_plane); exec bin/bench $(BENCH)

.PHONY: faults
faults: build ## Break things around sallyport while pods are created, for up to 60 minutes; needs root and haproxy
	@$(build_command) -o bin/faults ./test/e2e/faults
	@[ -n "$(FAULTS)" ] || command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ] || { \
		echo "haproxy is missing: installing the distribution's"; \
		apt-get install -y haproxy >/dev/null || { \
			echo "install haproxy by hand, or choose rows with FAULTS=\"-rows ...\" (bin/faults -list prints them)"; exit 1; }; }
	@$(with_control_plane); exec bin/faults -sallyport bin/sallyport $(FAULTS)

.PHONY: conformance
conformance: components += kube-controller-manager kube-scheduler kwok e2e.test
conformance: ## Run Kubernetes' own webhook suites against sallyport, in 2 minutes once all is built; needs root
	@$(build_command) -o bin/testwebhook ./examples/testwebhook
	@CGO_ENABLED=0 $(GO) -C test/conformance build -trimpath -o $(CURDIR)/bin/conformance .
	@$(with_control_plane); exec bin/conformance -testwebhook bin/testwebhook -out bin/conformance-results $(CONFORMANCE)

.PHONY: nightly
nightly: ## What takes too long for every change: 10,000 changed PodDefaults, conformance three times, then all faults; needs root and haproxy
	@$(with_control_plane); $(GO) test ./test/e2e -run 'TestPodDefaultsUnderControl/what_may_be_written' -v -changes 10000
	@$(MAKE) --no-print-directory conformance CONFORMANCE="-runs 3 $(CONFORMANCE)"
	@$(MAKE) --no-print-directory faults

.PHONY: lint
lint: ## Run golangci-lint as pinned in tools/lint/go.mod
	@set -e; for m in . $(other_modules); do \
		echo "golangci-lint run in $$m"; \
		(cd "$$m" && $(GO) tool -modfile="$(CURDIR)/tools/lint/go.mod" golangci-lint run ./...); done

.PHONY: generate
generate: ## Generate deep copies, CustomResourceDefinitions, what config/ and charts/ have of them and of the rights, and docs/api.md
	@$(GO) tool -modfile=tools/go.mod controller-gen \
		object:headerFile=tools/boilerplate.go.txt crd:generateEmbeddedObjectMeta=true \
		paths=./api/... output:crd:dir=config/crd
	@$(GO) tool -modfile=tools/go.mod controller-gen \
		object:headerFile=tools/boilerplate.go.txt crd \
		paths=./examples/crontab/... output:crd:dir=examples/crontab/config/crd
	@$(GO) tool -modfile=tools/go.mod controller-gen \
		object:headerFile=tools/boilerplate.go.txt crd webhook paths=./examples/kubebuilder/... \
		output:crd:dir=examples/kubebuilder/config/crd output:webhook:dir=examples/kubebuilder/config/webhook
	@$(GO) -C tools run ./crdtrim $(CURDIR)/config/crd/*_*.yaml
	@$(GO) test ./webhooks/poddefault -run GeneratedSchemas -update >/dev/null
	@$(GO) test ./cmd/sallyport -run 'Generated|EveryDefinitionIsIn|WhatTheChartHas' -update >/dev/null || { \
		echo "run: $(GO) test ./cmd/sallyport -run 'Generated|EveryDefinitionIsIn|WhatTheChartHas' -update"; exit 1; }
	@$(GO) run ./cmd/sallyport serve --help | $(GO) -C tools run ./apireference $(CURDIR) > docs/api.md

.PHONY: verify
verify: ## Check that all is formatted, tidy and generated as it should be; changes nothing
	@echo "gofmt"; unformatted=$$(gofmt -l .) || exit 1; \
	[ -z "$$unformatted" ] || { echo "not formatted, run gofmt -w:"; echo "$$unformatted"; exit 1; }
	@for m in $(modules); do \
		echo "go mod tidy -diff in $$m"; \
		$(GO) -C "$$m" mod tidy -diff || { echo "$$m/go.mod is not tidy, run: $(GO) -C $$m mod tidy"; exit 1; }; done
	@cd test/conformance && for m in kubernetes-*.mod; do \
		echo "go mod tidy -diff with test/conformance/$$m"; \
		$(GO) mod tidy -diff -modfile="$$m" || { echo "$$m is not tidy, run: cd test/conformance && $(GO) mod tidy -modfile=$$m"; exit 1; }; done
	@echo "make generate"; tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && trap 'exit 1' INT TERM && \
	tar --exclude=./.git --exclude=./bin -cf - . | tar -xf - -C "$$tmp" && \
	$(MAKE) --no-print-directory -C "$$tmp" generate && \
	stale=$$(cd "$$tmp" && find . -type f | while read -r f; do cmp -s "$$f" "$(CURDIR)/$$f" || echo "$$f"; done) && \
	{ [ -z "$$stale" ] || { echo "not up to date, run make generate:"; echo "$$stale"; exit 1; }; }

.PHONY: clean
clean: ## Remove bin/ (the control plane's cache stays: `make controlplane` prints where)
	rm -rf bin
