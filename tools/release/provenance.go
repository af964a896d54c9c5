// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"runtime"
)

const provenanceFile = "provenance.json"

// What of an in-toto statement with SLSA provenance is written: https://slsa.dev/spec/v1.0/provenance.
type (
	statement struct {
		Type          string        `json:"_type"`
		Subject       []subject     `json:"subject"`
		PredicateType string        `json:"predicateType"`
		Predicate     slsaPredicate `json:"predicate"`
	}
	subject struct {
		Name   string            `json:"name"`
		Digest map[string]string `json:"digest"`
	}
	slsaPredicate struct {
		BuildDefinition slsaBuild `json:"buildDefinition"`
		RunDetails      slsaRun   `json:"runDetails"`
	}
	slsaBuild struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		ResolvedDependencies []slsaSource      `json:"resolvedDependencies"`
	}
	slsaSource struct {
		URI    string            `json:"uri"`
		Digest map[string]string `json:"digest,omitempty"`
	}
	slsaRun struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	}
)

const repository = "https://github.com/sallyport-io/sallyport"

// provenance says from which commit, and with which toolchain, the files were made. The
// checksums contain it, so their signature is also its own.
func (s settings) provenance() error {
	commit, err := git(s.top, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	sums, err := sumsOf(s.out)
	if err != nil {
		return err
	}
	out := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, f := range sums {
		out.Subject = append(out.Subject, subject{f.name, map[string]string{"sha256": f.sum}})
	}
	out.Predicate.BuildDefinition = slsaBuild{
		BuildType: repository + "/blob/main/docs/releasing.md", ExternalParameters: map[string]string{"version": s.version},
		ResolvedDependencies: []slsaSource{
			{URI: "git+" + repository, Digest: map[string]string{"gitCommit": commit}},
			{URI: "pkg:generic/go@" + runtime.Version()[len("go"):]},
		},
	}
	out.Predicate.RunDetails.Builder.ID = repository + "/tree/main/tools/release"
	data, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return err
	}
	return s.write(provenanceFile, append(data, '\n'))
}
