// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// What of SPDX 2.3 is written: https://spdx.github.io/spdx-spec/v2.3/.
type spdxDocument struct {
	SPDXVersion   string             `json:"spdxVersion"`
	DataLicense   string             `json:"dataLicense"`
	SPDXID        string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	CreationInfo  spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name             string         `json:"name"`
	SPDXID           string         `json:"SPDXID"`
	Version          string         `json:"versionInfo"`
	DownloadLocation string         `json:"downloadLocation"`
	FilesAnalyzed    bool           `json:"filesAnalyzed"`
	LicenseConcluded string         `json:"licenseConcluded"`
	LicenseDeclared  string         `json:"licenseDeclared"`
	Copyright        string         `json:"copyrightText"`
	Checksums        []spdxChecksum `json:"checksums,omitempty"`
	ExternalRefs     []spdxRef      `json:"externalRefs"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

// sbom returns the software bill of materials of a Go binary, from what the linker has
// written into it: all modules whose packages are in it, and the standard library.
func sbom(file, version string) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	root := spdxModule(info.Main.Path, version)
	root.LicenseDeclared, root.LicenseConcluded = "Apache-2.0", "Apache-2.0"
	root.Checksums = []spdxChecksum{{"SHA256", hex.EncodeToString(sum[:])}}
	document := spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT", Name: "sallyport " + version,
		Namespace: "https://github.com/sallyport-io/sallyport/spdx/" + hex.EncodeToString(sum[:]),
		// The time of the build would make each document another one; SPDX wants some time.
		CreationInfo:  spdxCreation{Created: "1970-01-01T00:00:00Z", Creators: []string{"Tool: sallyport-release"}},
		Packages:      []spdxPackage{root},
		Relationships: []spdxRelationship{{"SPDXRef-DOCUMENT", "DESCRIBES", root.SPDXID}},
	}
	modules := append([]*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}, info.Deps...)
	for _, m := range modules {
		if m.Replace != nil {
			m = m.Replace
		}
		document.Packages = append(document.Packages, spdxModule(m.Path, m.Version))
	}
	rest := document.Packages[1:]
	slices.SortFunc(rest, func(a, b spdxPackage) int { return strings.Compare(a.SPDXID, b.SPDXID) })
	for _, p := range rest {
		document.Relationships = append(document.Relationships, spdxRelationship{root.SPDXID, "DEPENDS_ON", p.SPDXID})
	}
	return json.MarshalIndent(document, "", " ")
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func spdxModule(path, version string) spdxPackage {
	return spdxPackage{
		Name: path, SPDXID: "SPDXRef-" + notInID.ReplaceAllString(path+"-"+version, "-"), Version: version, DownloadLocation: "NOASSERTION",
		LicenseConcluded: "NOASSERTION", LicenseDeclared: "NOASSERTION", Copyright: "NOASSERTION",
		ExternalRefs: []spdxRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
}
