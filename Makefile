# SPDX-License-Identifier: Apache-2.0
# `make` prints what there is to make. Needed: Go 1.26, make, git. No C compiler.

SHELL := /bin/sh
GO ?= go

# How long each fuzz target runs in `make fuzz` and `make nightly`.
FUZZTIME ?= 1m
# How often each property is tried in `make properties` and `make nightly`.
CHECKS ?= 10000
# Flags for `make bench` and `make bench-peers`, for example BENCH="-json".
BENCH ?=
# Flags for `make faults`, for example FAULTS="-rows rolling-restart,kill".
FAULTS ?=
# Flags for `make conformance`, for example CONFORMANCE="-runs 3".
CONFORMANCE ?=

# How many test packages `make test` runs at once on API servers, and how many tests of each.
# They wait more than they compute, so it is more than there are processors; each has an API
# server with some 600 MB.
PARALLEL ?= 4

# The release of Kubernetes that the targets test, demo, dev, bench, bench-peers, faults, conformance and
# controlplane take, for example K8S=1.36.5; without it the newest. An unknown one is
# refused with a list of those that are known.
K8S ?=

# Those that are older than the newest.
older = $(notdir $(wildcard test/controlplane/versions/*))

# The folder with etcd, kube-apiserver and kubectl, for `make conformance` also with
# kube-controller-manager, kube-scheduler, kwok and e2e.test. If it is set, none is built.
ifneq ($(KUBEBUILDER_ASSETS),)
export KUBEBUILDER_ASSETS := $(abspath $(KUBEBUILDER_ASSETS))
endif

# Everything is compiled with the same settings, so that vet, tests and commands share what
# the build cache has of Kubernetes. With cgo all above package net would be compiled again;
# without the tag gRPC, which a client of webhooks for authentication needs, brings pages with
# traces that nobody serves, and templates, for which the linker keeps all methods: 18 MB.
export CGO_ENABLED := 0
ifeq ($(findstring grpcnotrace,$(GOFLAGS)),)
export GOFLAGS := $(strip $(GOFLAGS) -trimpath -tags=grpcnotrace)
endif

# What of the control plane is needed; tests need controllers, a scheduler and nodes, too.
components = etcd kube-apiserver kubectl
demo demo-cloud: components = etcd kube-apiserver
apiserver alone race-all: components += kube-controller-manager kube-scheduler kwok helm kustomize
# Builds what is missing; prints progress on stderr, the folder as its last line.
controlplane = (cd test/controlplane && GOWORK=off $(GO) run . $(if $(K8S),-kubernetes "$(K8S)") $(components))
# For the beginning of a recipe's command: builds the control plane and sets
# KUBEBUILDER_ASSETS for the rest.
with_control_plane = assets=$$( $(controlplane) ) || exit 1; \
	KUBEBUILDER_ASSETS=$$(printf '%s\n' "$$assets" | tail -n 1); export KUBEBUILDER_ASSETS

# Compilers, tests, and the API servers and commands that tests start collect garbage less often:
# that takes a fifth of the CPU time off a test run. Servers under test do not inherit it (lab.Serve).
quickstart demo demo-cloud dev build controlplane check test: export GOGC := 400

# The race detector needs cgo, so tests run with it only where there is a compiler.
race = $$(command -v "$$(CGO_ENABLED=1 $(GO) env CC | cut -d' ' -f1)" >/dev/null 2>&1 && echo -race)

# $(call gotest,STAGE,PACKAGES,FLAGS) runs tests and keeps what they said, as events and as
# JUnit, in bin/test-results. RERUNS is how often a test that failed is run again: it passes
# then, and $(report) counts it as flaky. A fourth argument is a command that runs them. `go vet`
# has looked at all before: for its part of that, `go test` would look at all of Kubernetes again.
results = $(CURDIR)/bin/test-results
gotestsum = $$(CGO_ENABLED=0 GOWORK=off $(GO) tool -modfile=$(CURDIR)/tools/gotestsum/go.mod -n gotestsum) --format pkgname --format-hide-empty-pkg --hide-summary skipped
gotest = mkdir -p $(results) && $(4) $(gotestsum) --jsonfile $(results)/$(1).json --junitfile $(results)/$(1).xml \
	$(if $(RERUNS),--rerun-fails=$(RERUNS) --rerun-fails-max-failures=5) --packages "$(2)" -- -vet=off $(3)
# Prints the slowest packages and tests of all stages, flaky ones, and the total.
started := $(shell date +%s)
report = ls $(results)/*.json >/dev/null 2>&1 && $(GO) -C tools run ./testreport -since $(started) $(results)/*.json; $(no_browser)

# Tests that need an API server are in cmd/test/e2e or have names that end so. The others need
# none: `make check` sets no KUBEBUILDER_ASSETS. The packages with the former, and those
# that draw random cases. What takes longest comes first, so that nothing long is left alone
# at the end.
on_apiserver = OnARealAPIServer
folders_with = $$(grep -rl --include='*_test.go' --exclude-dir=bin --exclude-dir=.git --exclude-dir=$(notdir $(operator_module)) $(1) . | xargs -n1 dirname | sort -u | tr '\n' ' ')
longest = ./cmd/test/docs ./cmd/test/e2e ./cmd/test/e2e/install ./cmd/internal/poddefault/status ./cmd/internal/install/scaffold ./internal/install/storagemigration \
	./cmd/test/bench . ./cmd/test/e2e/dataset ./examples/crontab ./cmd/sallyport ./cmd/test/e2e/console
apiserver_packages = $(longest) ./cmd/test/e2e/... $(call folders_with,'^func Test.*$(on_apiserver)')
# The browser that tries the pages of the console: SALLYPORT_BROWSER or a chromium on the PATH. With
# SALLYPORT_BROWSER=required, as in continuous integration, there has to be one.
browser = for name in "$$SALLYPORT_BROWSER" chromium chromium-browser google-chrome google-chrome-stable; do command -v "$$name" 2>/dev/null && break; done
browser_tests = ./cmd/test/e2e/console
no_browser = [ -n "$$($(browser))" ] || echo "The pages of the console were NOT tried: there is no browser. Install one (Debian: apt-get install chromium), or set SALLYPORT_BROWSER to the path of a chromium."
# Runs a command with one API server for those tests that need none of their own.
shared = $(GO) run ./test/lab/shared
# It takes a quarter of an hour, and history that a shallow clone lacks: `make upgrade` and `make nightly` run it.
upgrading = UpgradeAndBackUnderLoad
# These measure failed and slow creates, so nothing else may compete for the machine: other
# tests yield to them.
alone_packages = ./cmd/test/e2e/faults
drawing_packages = $(call folders_with,'"pgregory.net/rapid"')

# Packages that `make test` runs under the race detector: those of whose tests this prints
# the name, because they need neither an API server nor what takes long to compile a second
# time: clients of it, CEL, gRPC.
race_packages = $(addprefix ./,$(wildcard admission conversion jsonpatch serving serving/certificate)) ./internal/... ./cmd/internal/...
large = "k8s.io/client-go/kubernetes" "k8s.io/client-go/tools/cache" "k8s.io/apiserver/pkg/server" "sigs.k8s.io/controller-runtime/pkg/client" \
	"github.com/google/cel-go/cel" "google.golang.org/grpc"
light = $$($(GO) list -test -f '{{$$large := false}}{{range .Deps}}{{if eq . $(large)}}{{$$large = true}}{{end}}{{end}}{{if not $$large}}{{.ImportPath}}{{end}}' $(race_packages) | \
	sed -n 's/\.test$$//p' | sort -u | tr '\n' ' ')

# A cloud provider's client libraries take minutes to compile, so `make provider` tests it.
provider_module = ./examples/cloud-controller-manager-gce

# An operator as its author has it, with tests on an API server.
operator_module = ./examples/bookstore

# go.work has the modules that are developed together: `work` are the packages of all of them, and ./...
# those of one. Their versions of what they have in common are the highest that one asks for, so a command for
# another module sets GOWORK=off. These are the folders of the packages of go.work's own modules, of all
# modules of the repository, and of those outside of go.work that have packages.
modules = $$(find . -name .git -prune -o -name bin -prune -o -name go.mod -print | xargs -n1 dirname | sort)
work_modules = $$($(GO) list -m -f '{{.Dir}}' | sed "s|^$(CURDIR)/|./|; s|^$(CURDIR)$$|.|")
other_modules = $$(for m in $(modules); do echo "$(work_modules)" | grep -qxF "$$m" || \
	{ [ "$$m" != $(provider_module) ] && [ -n "$$(GOWORK=off $(GO) -C "$$m" list ./... 2>/dev/null)" ] && echo "$$m"; }; done)

# The version of `make image` and `make release`.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null | sed 's/^[^v]/v0.0.0-&/')
release_folder = $(CURDIR)/bin/release

# Compilers collect garbage when they have 1 GiB, and no sooner: a tenth less CPU time again.
# What runs afterwards does not inherit that.
build_command = GOGC=off GOMEMLIMIT=1GiB $(GO) build

.PHONY: help
help: ## Print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

.PHONY: quickstart
quickstart: ## Build sallyport, and ask it what a PodDefault does to a pod; no cluster, no control plane
	@echo "Building bin/sallyport: about 2 minutes on two cores the first time, then seconds."
	@$(build_command) -o bin/sallyport ./cmd/sallyport
	bin/sallyport review -f examples/poddefaults/notebook-pod.yaml --with examples/poddefaults/gcp-credentials.yaml

# Prints the steps of a demo first, because it builds for minutes before it shows anything.
.PHONY: demo-plan
demo-plan:
	@echo "1. sallyport and the demo: built, in about 2 minutes on two cores the first time, then in seconds"
	@echo "2. $$(cd test/controlplane && GOWORK=off $(GO) run . -plan $(if $(K8S),-kubernetes "$(K8S)") $(components))"
	@echo "3. the demo: some 10 seconds on a real API server"

.PHONY: demo
demo: demo-plan build ## Show PodDefault injection on a real API server, check it, and end; says first how long it takes
	@$(build_command) -o bin/demo ./test/demo
	@$(with_control_plane); exec bin/demo

.PHONY: demo-cloud
demo-cloud: demo-plan ## Show a sample cloud controller manager that labels volumes on a real API server, check it, and end
	@$(build_command) -o bin/demo ./test/demo
	@$(build_command) -o bin/cloud-controller-manager ./examples/cloud-controller-manager
	@$(with_control_plane); exec bin/demo -cloud

.PHONY: dev
dev: demo-plan build ## The same, and stay up until Ctrl-C, with a KUBECONFIG to use
	@$(build_command) -o bin/demo ./test/demo
	@$(with_control_plane); exec bin/demo -stay

.PHONY: build
build: ## Build bin/sallyport
	@$(build_command) -o bin/sallyport ./cmd/sallyport

.PHONY: image
image: ## Make image tarballs for amd64 and arm64 in bin/release, without a container daemon
	@GOWORK=off $(GO) -C tools/release run . image -version "$(VERSION)" -top "$(CURDIR)" -out "$(release_folder)"

# SIGNING_KEY is the file with the private key; TAG=1 sets the tags.
.PHONY: release
release: components = helm kustomize
release: ## Make everything of a release in bin/release: VERSION=v1.2.3 SIGNING_KEY=FILE; with TAG=1 tag it; nothing leaves the machine
	@rm -rf "$(release_folder)"; $(with_control_plane); GOWORK=off $(GO) -C tools/release run . all -version "$(VERSION)" -top "$(CURDIR)" \
		-out "$(release_folder)" -tools "$$KUBEBUILDER_ASSETS" -key "$(SIGNING_KEY)" $(if $(TAG),-tag)

.PHONY: rehearse
rehearse: components = etcd kube-apiserver kubectl helm kustomize
rehearse: ## Release HEAD to a proxy, a registry and a file server on loopback, and fetch, verify and install it from there; needs openssl
	@$(with_control_plane); $(shared) env GOWORK=off $(GO) -C tools/release run ./rehearse -top "$(CURDIR)"

.PHONY: upgrade
upgrade: components = etcd kube-apiserver kube-controller-manager kubectl helm kustomize
upgrade: build ## Replace the release before by HEAD and back, by chart, kustomize and binary, while pods are created; needs the history
	@$(with_control_plane); $(GO) test ./cmd/test/e2e/install -run '$(upgrading)' -count=1 -v -timeout 60m

# Projects that use controller-runtime. The modules of JobSet and Kueue have their tests.
adopters = new@v0.23.3 new@v0.24.1 sigs.k8s.io/controller-runtime@v0.25.2 sigs.k8s.io/jobset@v0.12.0 sigs.k8s.io/kueue@v0.17.0
.PHONY: adopters
adopters: components += kustomize
adopters: ## Try `go get` of the library in other projects, and run their webhook suites with their server and with ours
	@$(with_control_plane); $(GO) -C tools run ./adopt -suites "$(CURDIR)" $(adopters)

.PHONY: controlplane
controlplane: ## Download or build etcd, kube-apiserver and kubectl unless cached; print their folder
	@$(controlplane)

.PHONY: check
check: ## Before each commit: format, vet, unit tests, import table, generated files; no API server
	@rm -rf $(results); set -e; for stage in format vet unit generated; do $(MAKE) --no-print-directory $$stage; done

.PHONY: test
test: ## For each change: check, other modules, and all that has to be true, on a real API server
	@rm -rf $(results); trap '$(report)' EXIT; trap 'exit 1' INT TERM; set -e; \
	for stage in format vet unit floor "-j 3 apiserver operator generated" "-j 4 alone race properties modules"; do \
		$(MAKE) --no-print-directory $$stage RERUNS=1 ALL=1 CHECKS=500 PROPERTIES="./cmd/internal/poddefault ./cmd/test/specification"; done

.PHONY: format
format:
	@echo "gofmt"; unformatted=$$(gofmt -l .) || exit 1; \
	[ -z "$$unformatted" ] || { echo "not formatted, run gofmt -w:"; echo "$$unformatted"; exit 1; }

.PHONY: vet
vet:
	$(GO) vet work

# The library at the lowest versions that its go.mod asks for, without what a go.work raises, and compiled with the newest.
library = . ./admission/... ./conversion/... ./jsonpatch/... ./serving/... ./registration/... ./controllerruntime/... ./sallyporttest/... ./internal/...
.PHONY: floor
floor: ## Vet and test the library with the oldest Kubernetes that it supports
	@echo "the library at its lowest versions"; unset KUBEBUILDER_ASSETS; export GOWORK=off; $(GO) vet ./... && \
	packages=$$($(GO) list $(library) | tr '\n' ' ') && $(call gotest,floor,$$packages,-short -skip '$(on_apiserver)')

# With ALL, packages that `make apiserver` runs whole are left to it.
.PHONY: unit
unit:
	@unset KUBEBUILDER_ASSETS; later=$$($(GO) list ./cmd/test/e2e/... $(if $(ALL),$(apiserver_packages))); \
	unit=$$($(GO) list work | grep -v '/examples/bookstore' | grep -vxF "$$later" | tr '\n' ' '); \
	echo "unit tests"; $(call gotest,unit,$$unit,-skip '$(on_apiserver)')

.PHONY: modules
modules:
	@others=$(other_modules); export GOWORK=off; for m in $$others; do echo "$$m"; nice -n 19 $(GO) -C "$$m" vet ./... || exit 1; \
		(cd "$$m" && $(call gotest,modules-$$(basename $$m),./...,-count=1 -skip '$(on_apiserver)',nice -n 19)) || exit 1; done

# With -short, a twentieth of the random cases (a fifth of rapid's): the unit tests draw all of
# them, and most run in one goroutine. It, the properties and the other modules run beside `make
# alone`, which waits more than it computes, and take only the time that it leaves.
.PHONY: race
race:
	@[ -n "$(race)" ] || { echo "no C compiler: no race detector"; exit 0; }; packages="$(light)"; \
	export CGO_ENABLED=1; echo "race detector"; $(call gotest,race,$$packages,-race -short -skip '$(on_apiserver)',nice -n 19)

.PHONY: properties
properties: ## Properties with CHECKS random cases each (default 10000)
	@drawing="$(or $(PROPERTIES),$(drawing_packages))"; echo "properties, $(CHECKS) cases each"; \
	$(call gotest,properties,$$drawing,-timeout 2h -skip '$(on_apiserver)' -args -rapid.checks=$(CHECKS),nice -n 19)

# Debian's chromium, where there is no browser and it may be installed.
.PHONY: browser
browser:
	@[ -z "$$($(browser))" ] || exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing chromium to try the pages of the console"; \
		apt-get install -y -q chromium >/dev/null 2>&1 || { apt-get update -q && apt-get install -y -q chromium; } >/dev/null 2>&1; fi; \
	[ -n "$$($(browser))" ] || [ "$$SALLYPORT_BROWSER" != required ] || { $(no_browser); exit 1; }

.PHONY: apiserver
apiserver: build browser ## Tests on a real API server
	@$(with_control_plane); packages=$$($(GO) list $(apiserver_packages) | grep -v "$(alone_packages:.%=%)$$" | { [ -n "$$($(browser))" ] && cat || grep -v "$(browser_tests:.%=%)$$"; } | tr '\n' ' '); echo "tests on an API server"; \
	$(call gotest,$(or $(STAGE),apiserver),$$packages,-count=1 -p $(PARALLEL) -parallel $(PARALLEL) -timeout 20m -skip '$(upgrading)',$(shared))

.PHONY: operator
operator:
	@$(with_control_plane); cd $(operator_module) && $(call gotest,$(or $(STAGE),apiserver)-bookstore,./...,-count=1)

.PHONY: alone
alone: build
	@$(with_control_plane); $(call gotest,$(or $(STAGE),apiserver)-alone,$(alone_packages),-count=1 -timeout 20m)

.PHONY: race-all
race-all: build browser ## All tests under the race detector, on a real API server too; needs a C compiler
	@$(with_control_plane); export CGO_ENABLED=1; $(call gotest,race-all,$$($(GO) list work | tr '\n' ' '),-race -count=1 -p 1 -timeout 60m -skip '$(upgrading)')

.PHONY: screenshots
screenshots: build browser ## Take the pictures of the console's pages that docs/console.md has
	@$(with_control_plane); $(GO) test $(browser_tests) -count=1 -run TestPages -screenshots "$(CURDIR)/docs/console"

.PHONY: provider
provider: ## Test the webhook that labels volumes with a real cloud provider and a fake cloud (first run: several minutes)
	export GOWORK=off; $(GO) -C $(provider_module) vet ./... && $(GO) -C $(provider_module) test ./...

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 1m) each
	@set -e; dirs=$$($(GO) list -f '{{.Dir}}' work); for dir in $$dirs; do \
		grep -qs '^func Fuzz' "$$dir"/*_test.go || continue; \
		listed=$$(cd "$$dir" && $(GO) test -list '^Fuzz' .); \
		for target in $$(printf '%s\n' "$$listed" | grep '^Fuzz'); do \
			echo "$$target in $${dir#"$(CURDIR)"/}"; \
			log=$$(mktemp); \
			(cd "$$dir" && $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x .) >"$$log" 2>&1 || { \
				cat "$$log"; grep -q 'context deadline exceeded' "$$log" && ! grep -q 'Failing input' "$$log" && \
				echo "the time was up in the middle of an input, and none failed: go on" || { rm -f "$$log"; exit 1; }; }; \
			tail -n 1 "$$log"; rm -f "$$log"; \
		done; done

.PHONY: bench
bench: build ## Measure sallyport against the floor and controller-runtime, in one run
	@$(build_command) -o bin/bench ./cmd/test/bench
	@$(with_control_plane); exec bin/bench $(BENCH)

.PHONY: scale
scale: build ## Measure sallyport in a cluster of 100,000 PodDefaults; some 10 minutes
	@$(build_command) -o bin/bench ./cmd/test/bench
	@$(with_control_plane); exec bin/bench -only scale $(BENCH)

.PHONY: bench-peers
bench-peers: ## Measure sallyport against Gatekeeper, Kyverno and Istio's injector, which are built from their modules the first time
	@$(build_command) -o bin/bench ./cmd/test/bench
	@$(with_control_plane); exec bin/bench -only peers $(BENCH)

.PHONY: faults
faults: build ## Break things around sallyport while pods are created, for an hour; needs root and haproxy
	@$(build_command) -o bin/faults ./cmd/test/e2e/faults
	@[ -n "$(FAULTS)" ] || command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ] || { \
		echo "haproxy is missing: installing the distribution's"; \
		apt-get install -y haproxy >/dev/null || { \
			echo "install haproxy by hand, or choose rows with FAULTS=\"-rows ...\" (bin/faults -list prints them)"; exit 1; }; }
	@$(with_control_plane); exec bin/faults -sallyport bin/sallyport $(FAULTS)

.PHONY: conformance
conformance: components += kube-controller-manager kube-scheduler kwok e2e.test
conformance: ## Run Kubernetes' own webhook suites against sallyport, in 2 minutes once all is built; needs root
	@$(build_command) -o bin/testwebhook ./examples/testwebhook
	@$(build_command) -o bin/conformance ./test/conformance
	@$(with_control_plane); exec bin/conformance -testwebhook bin/testwebhook -out bin/conformance-results $(CONFORMANCE)

.PHONY: nightly
nightly: ## Hours: race detector over all, fuzzing, CHECKS cases of each property, older Kubernetes, a provider, conformance, faults; needs root and haproxy
	@rm -rf $(results); trap '$(report)' EXIT; trap 'exit 1' INT TERM; set -e; \
	for stage in race-all properties; do $(MAKE) --no-print-directory $$stage; done; \
	$(MAKE) --no-print-directory fuzz; \
	for release in $(older); do echo "Kubernetes $$release"; $(MAKE) --no-print-directory apiserver operator alone K8S=$$release STAGE=apiserver-$$release; done; \
	$(MAKE) --no-print-directory provider
	@$(GO) test ./internal/json/decode -run TestRecordSeesChangesWhateverTheMemoryDoes -timeout 2h -mutations 1000000
	@$(with_control_plane); $(GO) test ./cmd/test/e2e -run 'TestPodDefaultsUnderControl/what_may_be_written' -v -changes 10000
	@$(with_control_plane); $(GO) test ./cmd/test/e2e -run 'TestSallyport/(a_PodDefault_counts|while_every_server|hundreds_of|private_paths)' -v -times 25
	@$(with_control_plane); $(GO) test ./cmd/test/e2e -run 'TestOwners/a_change_reaches' -v -times 25 -timeout 30m
	@$(with_control_plane); $(GO) test ./cmd/internal/poddefault/status ./cmd/internal/poddefault/backstop ./cmd/internal/live/console ./examples/crontab -run 'TestController|TestConflicts|TestIndexes|TestConsole|TestACache' -v -times 5
	@$(with_control_plane); $(GO) test ./cmd/internal/offline/chain -run OnARealAPIServer -v -times 5 -seed "$$(date +%s)"
	@$(with_control_plane); $(GO) test ./cmd/test/deceiving -run OnARealAPIServer -v -timeout 30m -every 1
	@$(MAKE) --no-print-directory conformance CONFORMANCE="-runs 3 $(CONFORMANCE)"
	@$(MAKE) --no-print-directory faults
	@$(MAKE) --no-print-directory rehearse
	@$(MAKE) --no-print-directory adopters
	@$(MAKE) --no-print-directory upgrade

# The types of the file of `serve --config`, and of the settings of webhooks in it.
file_types = $(product)/serve/config/v1alpha1.SallyportConfiguration,$(product)/serve.PodDefaultSettings,$(subst $() ,$(comma),$(patsubst %,$(product)/webhooks/%.Settings,imagepull servicetype projectlimit dataset))
file_packages = ./internal/serve/... ./internal/poddefault ./internal/webhooks/... $(addprefix $(module)/,registration serving serving/certificate internal/hosting/logging)
module = github.com/sallyport-io/sallyport
product = $(module)/cmd/internal
comma = ,

.PHONY: lint
lint: ## Run golangci-lint as pinned in tools/lint/go.mod, and Kubernetes' linter over the API types and those of the configuration file
	@echo "kube-api-linter"; GOWORK=off $(GO) -C tools/apilint run . exceptions.yaml "$(CURDIR)/api" ./kubeflow/... ./sallyport/...
	@GOWORK=off $(GO) -C tools/apilint run . -types $(file_types) file-exceptions.yaml "$(CURDIR)/cmd" $(file_packages)
	@set -e; linter=$$(GOWORK=off $(GO) tool -modfile=tools/lint/go.mod -n golangci-lint); \
	for m in $(work_modules); do echo "golangci-lint run in $$m"; (cd "$$m" && "$$linter" run ./...); done; \
	for m in $(other_modules); do echo "golangci-lint run in $$m"; (cd "$$m" && GOWORK=off "$$linter" run ./...); done

.PHONY: generate
generate: definitions templates ## Generate deep copies, CustomResourceDefinitions, what config/ and charts/ have of them and of the rights, the console's pages, and docs/api.md
	@$(GO) test ./cmd/sallyport -run 'Generated|EveryDefinitionIsIn|WhatTheChartHas' -update >/dev/null || { \
		echo "run: $(GO) test ./cmd/sallyport -run 'Generated|EveryDefinitionIsIn|WhatTheChartHas' -update"; exit 1; }
	@$(GO) test ./config/crd -run Generated -update >/dev/null
	@$(MAKE) --no-print-directory reference

# Deep copies and definitions, from the types.
.PHONY: definitions
definitions:
	@$(GO) tool controller-gen \
		object:headerFile=tools/boilerplate.go.txt crd:generateEmbeddedObjectMeta=true \
		paths=./api/... output:crd:dir=config/crd
	@$(GO) tool controller-gen \
		object:headerFile=tools/boilerplate.go.txt crd \
		paths=./examples/crontab/... output:crd:dir=examples/crontab/config/crd
	@$(GO) tool controller-gen \
		object:headerFile=tools/boilerplate.go.txt crd webhook paths=./examples/kubebuilder/... \
		output:crd:dir=examples/kubebuilder/config/crd output:webhook:dir=examples/kubebuilder/config/webhook
	@cd $(operator_module) && $(GO) tool controller-gen \
		object:headerFile=$(CURDIR)/tools/boilerplate.go.txt crd paths=./api/... output:crd:dir=config/crd
	@$(GO) -C tools run ./crdtrim $(CURDIR)/config/crd/*_*.yaml
	@$(GO) test ./cmd/internal/poddefault/validate -run GeneratedSchemas -update >/dev/null

# The console's pages, from their templates.
.PHONY: templates
templates:
	@$(GO) tool templ generate -log-level=warn -path cmd/internal/live/console

# docs/api.md, from the types.
.PHONY: reference
reference:
	@$(GO) -C tools run ./apireference $(CURDIR) > docs/api.md

# What is generated is generated again, from a copy, unless nothing of that has changed since
# it was found to be right. What unit tests generate, under -update, they compare themselves:
# also the part of config/crd that is from a table of poddefault. `make verify` generates all,
# whatever has changed.
from_definitions = api examples/bookstore examples/crontab examples/kubebuilder config/crd
from_templates = cmd/internal/live/console
from_reference = api cmd/internal/serve cmd/internal/poddefault cmd/internal/webhooks docs/api.md
.PHONY: generated
generated:
	@mkdir -p bin; changed=$$($(foreach target,definitions templates reference, \
		[ -e bin/.$(target) ] && [ -z "$$(find $(from_$(target)) tools go.work cmd/go.mod api/go.mod Makefile -type f -newer bin/.$(target))" ] || echo $(target);)) && \
	[ -n "$$changed" ] || exit 0; echo make $$changed; tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && trap 'exit 1' INT TERM && \
	tar --exclude=./.git --exclude=./bin -cf - . | tar -xf - -C "$$tmp" && \
	for target in $$changed; do $(MAKE) --no-print-directory -C "$$tmp" $$target || exit 1; done && \
	stale=$$(cd "$$tmp" && find . -type f | while read -r f; do cmp -s "$$f" "$(CURDIR)/$$f" || echo "$$f"; done) && \
	{ [ -z "$$stale" ] || { echo "not up to date, run make generate:"; echo "$$stale"; exit 1; }; } && \
	for target in $$changed; do touch bin/.$$target || exit 1; done

.PHONY: verify
verify: format ## Check that all is formatted, tidy and generated as it should be, count exported identifiers and the lines of packages, and compare the stable core with its record; changes nothing
	@for m in $(modules); do \
		echo "go mod tidy -diff in $$m"; \
		GOWORK=off $(GO) -C "$$m" mod tidy -diff || { echo "$$m/go.mod is not tidy, run: $(GO) -C $$m mod tidy"; exit 1; }; done
	@cd test/conformance/suite && for m in kubernetes-*.mod; do \
		echo "go mod tidy -diff with test/conformance/suite/$$m"; \
		GOWORK=off $(GO) mod tidy -diff -modfile="$$m" || { echo "$$m is not tidy, run: cd test/conformance/suite && $(GO) mod tidy -modfile=$$m"; exit 1; }; done
	@echo "exported identifiers"; $(GO) -C tools run ./exported -most 354 $(CURDIR)
	@echo "budgets"; $(GO) -C tools run ./budgets budgets/exceptions.yaml $(CURDIR)
	@echo "the stable core"; $(GO) -C tools run ./compatibility $(CURDIR)
	@rm -f bin/.definitions bin/.templates bin/.reference; $(MAKE) --no-print-directory generated

.PHONY: record-api
record-api: ## Record the API of the stable core, of which docs/compatibility.md tells
	@$(GO) -C tools run ./compatibility -record $(CURDIR)

.PHONY: clean
clean: ## Remove bin/ (the control plane's cache stays: `make controlplane` prints where)
	rm -rf bin
