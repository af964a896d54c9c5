// SPDX-License-Identifier: Apache-2.0

//go:build conformance

// Command suite is Kubernetes' end-to-end suite with the cases of
// cmd/test/e2e/apimachinery, as its module has them: this file adds none and changes none.
// It is built as e2e.test by ../../controlplane; the build tag keeps all that it imports
// out of `go vet ./...`.
//
// Beside the flags of the suite it has -cases, the number of an open file to which it
// writes one line of JSON for each case when that ends: name, state in Ginkgo's words,
// seconds and, if it did not pass, why. Cases that the focus leaves out are not told.
package main

import (
	"encoding/json"
	"flag"
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	conformancedata "k8s.io/kubernetes/test/conformance/testdata"
	_ "k8s.io/kubernetes/test/e2e" // what is done before and after the suite
	_ "k8s.io/kubernetes/test/e2e/apimachinery"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	manifests "k8s.io/kubernetes/test/e2e/testing-manifests"
	"k8s.io/kubernetes/test/fixtures"
)

func main() {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	cases := flag.Int("cases", 0, "number of an open `file` for a line of JSON for each case that ends; 0 for none")
	flag.Parse()
	for _, source := range []testfiles.FileSource{
		manifests.GetE2ETestingManifestsFS(), fixtures.GetTestFixturesFS(), conformancedata.GetConformanceTestdataFS(),
	} {
		testfiles.AddFileSource(source)
	}
	framework.AfterReadingAllFlags(&framework.TestContext) // which runs all cases dry, to check their names
	if *cases != 0 {
		lines := json.NewEncoder(os.NewFile(uintptr(*cases), "cases"))
		ginkgo.ReportAfterEach(func(report ginkgo.SpecReport) { tell(lines, report) })
	}
	gomega.RegisterFailHandler(framework.Fail)
	chosen, reports := framework.CreateGinkgoConfig()
	if !ginkgo.RunSpecs(verdict{}, "Kubernetes against Sallyport", chosen, reports) {
		os.Exit(1)
	}
}

// tell writes the line of a case.
func tell(lines *json.Encoder, report ginkgo.SpecReport) {
	if report.LeafNodeType != types.NodeTypeIt || report.State == types.SpecStateSkipped && report.Failure.Message == "" {
		return
	}
	err := lines.Encode(map[string]any{
		"name": report.FullText(), "state": report.State.String(), "seconds": report.RunTime.Seconds(), "message": report.Failure.Message,
	})
	if err != nil {
		panic(err) // nobody reads: a run of which nothing is known is of no use
	}
}

// verdict stands in for a *testing.T; RunSpecs returns what it would be told.
type verdict struct{}

func (verdict) Fail() {}
