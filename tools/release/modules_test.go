// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// The modules are made of HEAD, with whatever is changed in the folder left out.
func TestModulesRequireEachOtherWithoutReplace(t *testing.T) {
	s := try(t)
	s.top = repositoryRoot(t)
	if err := modules(s); err != nil {
		t.Fatal(err)
	}
	proxy := filepath.Join(s.out, "modules/github.com/sallyport-io/sallyport")
	for _, folder := range []string{"cmd", "cloud", "sallyporttest/matchconditions"} {
		definition := read(t, filepath.Join(proxy, folder, "@v/v1.2.3.mod"))
		if strings.Contains(definition, "replace") || !strings.Contains(definition, top+" v1.2.3\n") || strings.Contains(definition, "v0.0.0-00010101000000-000000000000") {
			t.Errorf("%s:\n%s", folder, definition)
		}
		sums := inZip(t, filepath.Join(proxy, folder, "@v/v1.2.3.zip"), top+"/"+folder+"@v1.2.3/go.sum")
		for _, want := range []string{"\n" + top + " v1.2.3 h1:", "\n" + top + " v1.2.3/go.mod h1:"} {
			if !strings.Contains("\n"+sums, want) {
				t.Errorf("%s: go.sum does not have%s", folder, want)
			}
		}
		if inZip(t, filepath.Join(proxy, folder, "@v/v1.2.3.zip"), top+"/"+folder+"@v1.2.3/LICENSE") == "" {
			t.Errorf("%s: no licence", folder)
		}
	}
	if inZip(t, filepath.Join(proxy, "@v/v1.2.3.zip"), top+"@v1.2.3/cmd/go.mod") != "" {
		t.Error("the library has the product in it")
	}
	tags := read(t, filepath.Join(s.out, "tags.txt"))
	commits := map[string]string{}
	for line := range strings.Lines(tags) {
		commit, tag, _ := strings.Cut(strings.TrimSpace(line), " ")
		commits[tag] = commit
	}
	if len(commits) != 7 || commits["v1.2.3"] != commits["api/v1.2.3"] || commits["cmd/v1.2.3"] != commits["cloud/v1.2.3"] || commits["cmd/v1.2.3"] == commits["v1.2.3"] {
		t.Errorf("tags:\n%s", tags)
	}
	again := try(t)
	again.top = s.top
	if err := modules(again); err != nil {
		t.Fatal(err)
	}
	if read(t, filepath.Join(again.out, "tags.txt")) != tags {
		t.Error("the same commit gives other commits for tags")
	}
}

func TestWhatPreventsAReleaseIsSaid(t *testing.T) {
	folder := t.TempDir()
	gitIn := func(args ...string) {
		t.Helper()
		if _, err := git(folder, append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n- next\n\n## [1.2.3] - 2026-11-25\n\n- something\n\n## [1.2.2] - 2026-11-24\n")
	gitIn("init", "--quiet")
	gitIn("add", "--all")
	gitIn("commit", "--quiet", "--message", "first")
	gitIn("tag", "cmd/v1.2.4-rc.1")
	s := settings{top: folder, version: "v1.2.3"}
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	if notes, err := s.notes(); err != nil || notes != "- something\n" {
		t.Errorf("notes %q (%v)", notes, err)
	}
	for name, tc := range map[string]struct {
		change func(*settings)
		want   string
	}{
		"no semantic version":         {func(s *settings) { s.version = "v1.2" }, "not a semantic version"},
		"a tag of a module":           {func(s *settings) { s.version = "v1.2.4-rc.1" }, "already tagged; choose the next version: cmd/v1.2.4-rc.1"},
		"a changelog without section": {func(s *settings) { s.version = "v2.0.0" }, `CHANGELOG.md has no section "## [2.0.0] - DATE"`},
		"an empty section":            {func(s *settings) { s.version = "v1.2.2" }, "section [1.2.2] of CHANGELOG.md is empty"},
		"a missing key":               {func(s *settings) { s.key = filepath.Join(folder, "none.pem") }, "reading the signing key"},
		"a file that is no key":       {func(s *settings) { s.key = filepath.Join(folder, "CHANGELOG.md") }, "openssl genpkey"},
		"a tag without a key":         {func(s *settings) { s.tag = true }, "-key FILE"},
		"no repository":               {func(s *settings) { s.top = t.TempDir() }, "git status"},
	} {
		t.Run(name, func(t *testing.T) {
			s := s
			tc.change(&s)
			if err := s.check(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	write("new.txt", "x")
	if err := s.check(); err == nil || !strings.Contains(err.Error(), "uncommitted changes: commit or stash them") {
		t.Errorf("a dirty folder: %v", err)
	}
	if err := everything(settings{top: folder, version: "v1.2.3", out: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "no release was made") {
		t.Errorf("a release of a dirty folder: %v", err)
	}
	if err := publish(settings{out: folder, registry: "127.0.0.1:1/x", version: "v1.2.3"}); err == nil || !strings.Contains(err.Error(), "the release is not signed") {
		t.Errorf("without a signature: %v", err)
	}
}

func TestSignaturesAreOfChecksumsAndImageAndAlwaysTheSame(t *testing.T) {
	s := try(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	s.key = filepath.Join(t.TempDir(), "key.pem")
	for name, data := range map[string][]byte{
		s.key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), filepath.Join(s.out, checksumsFile): []byte("sums\n"),
	} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := layout.Write(filepath.Join(s.out, imageFolder), empty.Index); err != nil {
		t.Fatal(err)
	}
	var signatures, ofImage []string
	for range 2 {
		if err := s.sign(); err != nil {
			t.Fatal(err)
		}
		signatures = append(signatures, read(t, filepath.Join(s.out, signatureFile)))
		ofImage = append(ofImage, read(t, filepath.Join(s.out, imageSignatureFile)))
	}
	sum := sha256.Sum256([]byte("sums\n"))
	if !ecdsa.VerifyASN1(&key.PublicKey, sum[:], []byte(signatures[0])) || signatures[0] != signatures[1] {
		t.Errorf("signatures %x", signatures)
	}
	statement := read(t, filepath.Join(s.out, imageStatementFile))
	digest, err := empty.Index.Digest()
	if err != nil || !strings.Contains(statement, `"docker-manifest-digest":"`+digest.String()+`"`) {
		t.Errorf("%s does not have %s, %v", statement, digest, err)
	}
	sum = sha256.Sum256([]byte(statement))
	if signature, err := base64.StdEncoding.DecodeString(ofImage[0]); err != nil || !ecdsa.VerifyASN1(&key.PublicKey, sum[:], signature) || ofImage[0] != ofImage[1] {
		t.Errorf("signatures of the image %s, %v", ofImage, err)
	}
}

func repositoryRoot(t *testing.T) string {
	t.Helper()
	folder, err := git(".", "rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// inZip returns the content of a file in an archive; empty if it is not there.
func inZip(t *testing.T, archive, name string) string {
	t.Helper()
	files, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = files.Close() }()
	file, err := files.Open(name)
	if err != nil {
		return ""
	}
	data, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
