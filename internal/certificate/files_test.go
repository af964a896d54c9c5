// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// volume is a mounted Secret volume: tls.crt is a link into ..data, which is a link to
// a folder that is replaced as a whole.
type volume struct {
	t       testing.TB
	path    string
	version int
}

func newVolume(t testing.TB) *volume {
	v := &volume{t: t, path: t.TempDir()}
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(v.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func (v *volume) write(certificate, key, ca []byte) {
	v.t.Helper()
	v.version++
	folder := "..version" + string(rune('a'+v.version))
	if err := os.Mkdir(filepath.Join(v.path, folder), 0o700); err != nil {
		v.t.Fatal(err)
	}
	for name, text := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(v.path, folder, name), text, 0o600); err != nil {
			v.t.Fatal(err)
		}
	}
	if err := os.Symlink(folder, filepath.Join(v.path, "..new")); err != nil {
		v.t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(v.path, "..new"), filepath.Join(v.path, "..data")); err != nil {
		v.t.Fatal(err)
	}
}

func (v *volume) options() FilesOptions {
	return FilesOptions{
		CertFile: filepath.Join(v.path, "tls.crt"),
		KeyFile:  filepath.Join(v.path, "tls.key"),
		CAFile:   filepath.Join(v.path, "ca.crt"),
		Logger:   silent,
	}
}

// writeIssued writes a new certificate of the issuer.
func (v *volume) writeIssued(by *issuer) {
	v.t.Helper()
	certificate, key := pairOf(v.t, by, time.Hour)
	v.write(certificate, key, encodeBundle(by.bundle))
}

func newTestFiles(t testing.TB, options FilesOptions) *Files {
	t.Helper()
	files, err := NewFiles(options)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// run runs the source until the test ends.
func run(t testing.TB, source Source) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := source.Run(ctx); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	t.Cleanup(func() {
		stop()
		group.Wait()
	})
}

func TestNewFilesRefuses(t *testing.T) {
	by := newTestIssuer(t, 48*time.Hour)
	certificate, key := pairOf(t, by, time.Hour)
	_, otherKey := pairOf(t, by, time.Hour)
	bundle := encodeBundle(by.bundle)
	late := func() time.Time { return time.Now().Add(2 * time.Hour) }
	early := func() time.Time { return time.Now().Add(-48 * time.Hour) }

	for name, test := range map[string]struct {
		certificate, key, ca []byte
		change               func(*FilesOptions)
		want                 string
	}{
		"no file names":                        {certificate, key, bundle, func(o *FilesOptions) { *o = FilesOptions{} }, "a file with the key is required"},
		"a negative interval":                  {certificate, key, bundle, func(o *FilesOptions) { o.PollInterval = -1 }, "poll interval -1ns"},
		"a certificate file that is not there": {certificate, key, bundle, func(o *FilesOptions) { o.CertFile += "x" }, "read the certificate"},
		"a key file that is not there":         {certificate, key, bundle, func(o *FilesOptions) { o.KeyFile += "x" }, "read the key"},
		"a CA file that is not there":          {certificate, key, bundle, func(o *FilesOptions) { o.CAFile += "x" }, "read the CA bundle"},
		"an empty certificate":                 {nil, key, bundle, nil, "read certificate and key"},
		"a key of another one":                 {certificate, otherKey, bundle, nil, "does not match"},
		"an empty CA bundle":                   {certificate, key, nil, nil, "contains no certificate"},
		"a CA of somebody else":                {certificate, key, encodeBundle(newTestIssuer(t, time.Hour).bundle), nil, "clients would reject"},
		"a private key among the CAs":          {certificate, key, append(bytes.Clone(bundle), key...), nil, "not a CERTIFICATE"},
		"one that has expired":                 {certificate, key, bundle, func(o *FilesOptions) { o.Now = late }, "expired at"},
		"one that is not valid yet":            {certificate, key, bundle, func(o *FilesOptions) { o.Now = early }, "compare the clocks"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t)
			v.write(test.certificate, test.key, test.ca)
			options := v.options()
			if test.change != nil {
				test.change(&options)
			}
			if _, err := NewFiles(options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

func TestFilesAreServed(t *testing.T) {
	by := newTestIssuer(t, time.Hour)
	v := newVolume(t)
	v.writeIssued(by)
	files := newTestFiles(t, v.options())
	expectAccepted(t, files)
	if !bytes.Equal(files.CABundle(), encodeBundle(by.bundle)) {
		t.Error("the bundle is not that of the CA file")
	}
	if left := time.Until(files.NotAfter()); left <= 0 || left > time.Hour {
		t.Errorf("expires in %s", left)
	}
}

func TestFilesWithoutCAHaveNoBundle(t *testing.T) {
	v := newVolume(t)
	v.writeIssued(newTestIssuer(t, time.Hour))
	options := v.options()
	options.CAFile = ""
	files := newTestFiles(t, options)
	if err := files.Ready(); err != nil {
		t.Error(err)
	}
	if files.CABundle() != nil {
		t.Errorf("got a bundle of %d bytes", len(files.CABundle()))
	}
}

func TestFilesThatExpireAreReported(t *testing.T) {
	v := newVolume(t)
	v.writeIssued(newTestIssuer(t, time.Hour))
	now := time.Now()
	options := v.options()
	options.Now = func() time.Time { return now }
	files := newTestFiles(t, options)
	now = now.Add(2 * time.Hour)
	if err := files.Ready(); err == nil || !strings.Contains(err.Error(), "expired at") {
		t.Errorf("got %v", err)
	}
	if _, err := files.GetCertificate(nil); err != nil {
		t.Errorf("an expired certificate is still served, clients say it best: %v", err)
	}
}

func TestFilesAreFollowed(t *testing.T) {
	first, second := newTestIssuer(t, time.Hour), newTestIssuer(t, time.Hour)

	t.Run("when the kubelet turns its link", func(t *testing.T) {
		v := newVolume(t)
		v.writeIssued(first)
		options := v.options()
		options.PollInterval = time.Hour // must not be what finds it
		files := newTestFiles(t, options)
		before, changed := serial(t, files), files.Changed()
		run(t, files)
		v.writeIssued(second)
		<-changed
		if serial(t, files) == before {
			t.Error("the certificate is the old one")
		}
		expectAccepted(t, files)
		if !bytes.Equal(files.CABundle(), encodeBundle(second.bundle)) {
			t.Error("the bundle is the old one")
		}
	})
	t.Run("when nobody tells of the change", func(t *testing.T) {
		// The link to the folder changes, while the watch is still on the old folder.
		old, next := newVolume(t), newVolume(t)
		old.writeIssued(first)
		next.writeIssued(second)
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(old.path, link); err != nil {
			t.Fatal(err)
		}
		options := (&volume{path: link}).options()
		options.PollInterval = time.Millisecond
		files := newTestFiles(t, options)
		changed := files.Changed()
		run(t, files)
		if err := os.Symlink(next.path, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
		<-changed
		expectAccepted(t, files)
	})
	t.Run("when the pair is written one after the other", func(t *testing.T) {
		folder := t.TempDir()
		options := FilesOptions{CertFile: filepath.Join(folder, "c"), KeyFile: filepath.Join(folder, "k"), Logger: silent}
		write := func(file string, text []byte) {
			t.Helper()
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		certificate, key := pairOf(t, first, time.Hour)
		write(options.CertFile, certificate)
		write(options.KeyFile, key)
		files := newTestFiles(t, options)
		before := serial(t, files)

		certificate, key = pairOf(t, second, time.Hour)
		write(options.CertFile, certificate)
		if err := files.load(); err == nil {
			t.Error("a certificate with the key of another one was taken")
		}
		if serial(t, files) != before {
			t.Error("the old certificate is not kept")
		}
		if err := files.Ready(); err != nil {
			t.Errorf("the old certificate is valid: %v", err)
		}

		changed := files.Changed()
		run(t, files)
		write(options.KeyFile, key)
		<-changed
		if serial(t, files) == before {
			t.Error("the certificate is the old one")
		}
	})
}

func TestAProblemIsLoggedOnceAndWithoutContents(t *testing.T) {
	var log bytes.Buffer
	v := newVolume(t)
	v.writeIssued(newTestIssuer(t, time.Hour))
	options := v.options()
	options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	now := time.Now()
	options.Now = func() time.Time { return now }
	files := newTestFiles(t, options)
	v.write([]byte("s3cret"), []byte("s3cret"), []byte("s3cret"))
	for range 3 {
		files.report(files.load())
	}
	if n := strings.Count(log.String(), "cannot be renewed"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
	if strings.Contains(log.String(), "s3cret") {
		t.Errorf("the log has the contents: %s", log.String())
	}
	now = now.Add(2 * time.Hour)
	if err := files.Ready(); err == nil || !strings.Contains(err.Error(), "failed to find any PEM data") {
		t.Errorf("got %v, want why there is no newer one", err)
	}
}

func FuzzFileContents(f *testing.F) {
	by := newTestIssuer(f, 1000*24*time.Hour)
	certificate, key := pairOf(f, by, 1000*24*time.Hour)
	f.Add(certificate, key, encodeBundle(by.bundle))
	f.Add(certificate, key, []byte{})
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n"), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, certificate, key, ca []byte) {
		parsed, bundle, err := fileContents{certificate, key, ca}.parse(time.Now())
		if err != nil {
			return
		}
		if parsed.Leaf == nil || validAt(parsed.Leaf, time.Now()) != nil {
			t.Error("a certificate that is not valid was taken")
		}
		if bytes.Contains(bundle, []byte("PRIVATE")) {
			t.Error("the bundle has a private key")
		}
	})
}
