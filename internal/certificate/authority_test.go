// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// A typed client implements Secrets.
var _ Secrets = typedcorev1.SecretInterface(nil)

const secretName = "authority"

var secrets = schema.GroupResource{Resource: "secrets"}

// store keeps one Secret in memory.
type store struct {
	mu       sync.Mutex
	secret   *corev1.Secret
	version  int
	watchers []*watch.RaceFreeFakeWatcher
	// fail is called before each operation.
	fail  func(verb string) error
	calls map[string]int
}

func newStore() *store { return &store{calls: map[string]int{}} }

func (s *store) begin(verb string) error {
	s.calls[verb]++
	if s.fail != nil {
		return s.fail(verb)
	}
	return nil
}

func (s *store) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin("get"); err != nil {
		return nil, err
	}
	if s.secret == nil {
		return nil, apierrors.NewNotFound(secrets, name)
	}
	return s.secret.DeepCopy(), nil
}

func (s *store) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin("create"); err != nil {
		return nil, err
	}
	if s.secret != nil {
		return nil, apierrors.NewAlreadyExists(secrets, secret.Name)
	}
	s.replace(watch.Added, secret.DeepCopy())
	return s.secret.DeepCopy(), nil
}

func (s *store) Update(_ context.Context, secret *corev1.Secret, _ metav1.UpdateOptions) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin("update"); err != nil {
		return nil, err
	}
	switch {
	case s.secret == nil:
		return nil, apierrors.NewNotFound(secrets, secret.Name)
	case s.secret.ResourceVersion != secret.ResourceVersion:
		return nil, apierrors.NewConflict(secrets, secret.Name, errors.New("somebody else was first"))
	}
	s.replace(watch.Modified, secret.DeepCopy())
	return s.secret.DeepCopy(), nil
}

func (s *store) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin("watch"); err != nil {
		return nil, err
	}
	if options.FieldSelector != "metadata.name="+secretName || options.ResourceVersion == "" || options.TimeoutSeconds == nil {
		return nil, errors.New("want a bounded watch of the one Secret from where it was read")
	}
	watcher := watch.NewRaceFreeFake()
	if s.secret == nil || options.ResourceVersion != s.secret.ResourceVersion {
		watcher.Error(&apierrors.NewResourceExpired("gone").ErrStatus)
	}
	s.watchers = append(s.watchers, watcher)
	return watcher, nil
}

// replace must be called with mu held.
func (s *store) replace(kind watch.EventType, secret *corev1.Secret) {
	s.version++
	event := secret
	if kind == watch.Deleted {
		event, secret = s.secret, nil
	} else {
		secret.ResourceVersion = strconv.Itoa(s.version)
	}
	s.secret = secret
	for _, watcher := range s.watchers {
		watcher.Action(kind, event.DeepCopy())
	}
}

// put writes the data of the Secret, as an administrator would.
func (s *store) put(data map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replace(watch.Modified, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName}, Data: maps.Clone(data)})
}

func (s *store) delete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replace(watch.Deleted, nil)
}

// endWatches ends watches, as an API server does every few minutes.
func (s *store) endWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, watcher := range s.watchers {
		watcher.Stop()
	}
	s.watchers = nil
}

func (s *store) setFail(fail func(verb string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

func (s *store) count(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[verb]
}

func (s *store) data() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secret == nil {
		return nil
	}
	return maps.Clone(s.secret.Data)
}

func newTestAuthority(t testing.TB, change func(*AuthorityOptions)) *Authority {
	t.Helper()
	options := AuthorityOptions{SecretName: secretName, DNSNames: []string{service}, Logger: silent}
	change(&options)
	authority, err := NewAuthority(options)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// started is a running authority on the store, on the fake clock of a synctest bubble.
func started(t testing.TB, s *store) *Authority {
	t.Helper()
	authority := newTestAuthority(t, func(o *AuthorityOptions) { o.Secrets = s })
	run(t, authority)
	synctest.Wait()
	return authority
}

func TestNewAuthorityRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		options AuthorityOptions
		want    []string
	}{
		"nothing to sign for":              {AuthorityOptions{}, []string{"at least one DNS name or IP address"}},
		"a Secret without a name":          {AuthorityOptions{Secrets: newStore(), DNSNames: []string{"a"}}, []string{"name of the Secret"}},
		"invalid names":                    {AuthorityOptions{DNSNames: []string{"a b", ""}}, []string{`DNS name "a b"`, `DNS name ""`}},
		"an invalid address":               {AuthorityOptions{IPAddresses: []net.IP{{1, 2}}}, []string{"IP address of 2 bytes"}},
		"a negative lifetime":              {AuthorityOptions{DNSNames: []string{"a"}, CertificateLifetime: -1}, []string{"lifetime -1ns"}},
		"a certificate beyond its signer":  {AuthorityOptions{DNSNames: []string{"a"}, Lifetime: time.Hour}, []string{"at most that of the authority, 1h0m0s"}},
		"everything that is wrong at once": {AuthorityOptions{Secrets: newStore(), CertificateLifetime: -1}, []string{"name of the Secret", "at least one", "lifetime"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewAuthority(test.options)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want %q", err, want)
				}
			}
		})
	}
}

func TestAuthorityInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority := newTestAuthority(t, func(o *AuthorityOptions) {
			o.SecretName = ""
			o.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
		})
		expectAccepted(t, authority)
		before, bundle := serial(t, authority), authority.CABundle()
		run(t, authority)

		time.Sleep(31 * time.Hour)
		if serial(t, authority) != before {
			t.Error("renewed before two thirds of its time")
		}
		time.Sleep(2 * time.Hour)
		if serial(t, authority) == before {
			t.Error("not renewed after two thirds of its time")
		}
		if !bytes.Equal(authority.CABundle(), bundle) {
			t.Error("renewing changed what clients must trust")
		}
		for range 7 {
			time.Sleep(24 * time.Hour)
			expectAccepted(t, authority)
		}
	})
}

func TestAuthorityRenewsWhenTheClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var ahead time.Duration
		authority := newTestAuthority(t, func(o *AuthorityOptions) {
			o.Now = func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				return time.Now().Add(ahead)
			}
		})
		run(t, authority)
		synctest.Wait()
		before := serial(t, authority)
		mu.Lock()
		ahead = 100 * time.Hour
		mu.Unlock()
		if err := authority.Ready(); err == nil || !strings.Contains(err.Error(), "expired at") {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Minute + time.Second)
		if err := authority.Ready(); err != nil || serial(t, authority) == before {
			t.Errorf("not renewed within a minute: %v", err)
		}
	})
}

func TestAuthorityIsCreatedByWhoComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		waiting := newTestAuthority(t, func(o *AuthorityOptions) { o.Secrets = s })
		if err := waiting.Ready(); err == nil {
			t.Error("ready without having looked for the Secret")
		}
		if _, err := waiting.GetCertificate(nil); err == nil || waiting.CABundle() != nil || !waiting.NotAfter().IsZero() {
			t.Error("something is served before there is anything")
		}

		first, second := started(t, s), started(t, s)
		expectAccepted(t, first)
		expectAcceptedBy(t, second, first.CABundle(), time.Now())
		if !bytes.Equal(first.CABundle(), second.CABundle()) {
			t.Error("replicas publish different bundles")
		}
		if serial(t, first) == serial(t, second) {
			t.Error("replicas share a certificate, and so a key")
		}
		if n := s.count("create"); n != 1 {
			t.Errorf("created %d times", n)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.secret.Type != corev1.SecretTypeTLS || s.secret.Labels["app.kubernetes.io/managed-by"] != "sallyport" {
			t.Errorf("got a Secret of type %s with labels %v", s.secret.Type, s.secret.Labels)
		}
		if keys := slices.Sorted(maps.Keys(s.secret.Data)); !slices.Equal(keys, []string{"ca-bundle.crt", "tls.crt", "tls.key"}) {
			t.Errorf("got keys %v", keys)
		}
		authority, err := parseBundle(s.secret.Data[signerCertificateKey])
		if err != nil {
			t.Fatal(err)
		}
		if years := time.Until(authority[0].NotAfter).Hours() / 24 / 365; years != 10 {
			t.Errorf("the authority is valid for %v years", years)
		}
	})
}

func TestReplicasThatStartTogetherAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		var replicas []*Authority
		for range 20 {
			replica := newTestAuthority(t, func(o *AuthorityOptions) { o.Secrets = s })
			run(t, replica)
			replicas = append(replicas, replica)
		}
		synctest.Wait()
		for _, replica := range replicas {
			expectAcceptedBy(t, replica, replicas[0].CABundle(), time.Now())
		}
		if n := s.count("create"); n > len(replicas) {
			t.Errorf("%d replicas tried to create %d times", len(replicas), n)
		}
		before := s.count("get") + s.count("create")
		time.Sleep(4 * time.Minute)
		if n := s.count("get") + s.count("create") - before; n != 0 {
			t.Errorf("%d calls while nothing happened", n)
		}
	})
}

func TestAnotherReplicaMayCreateItInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		other := newTestIssuer(t, 1000*time.Hour)
		s.fail = func(verb string) error {
			if verb == "create" && s.secret == nil {
				s.replace(watch.Added, &corev1.Secret{Data: dataOf(t, other)})
			}
			return nil
		}
		authority := started(t, s)
		expectAccepted(t, authority)
		expectAcceptedBy(t, authority, encodeBundle(other.bundle), time.Now())
	})
}

func TestAuthorityFollowsTheSecret(t *testing.T) {
	old := func(t *testing.T, s *store) *issuer {
		parsed, err := parseIssuer(s.data())
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	t.Run("another signer signs a new certificate and tells", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			authority := started(t, s)
			changed, next := authority.Changed(), newTestIssuer(t, 1000*time.Hour)
			s.put(dataOf(t, next))
			<-changed
			expectAccepted(t, authority)
			expectAcceptedBy(t, authority, encodeBundle(next.bundle), time.Now())
		})
	})
	t.Run("a bundle that grows is published, and the old signer still signs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			authority := started(t, s)
			signer, next := old(t, s), newTestIssuer(t, 1000*time.Hour)
			grown := &issuer{certificate: signer.certificate, chain: signer.chain, key: signer.key,
				bundle: []*x509.Certificate{signer.certificate, next.certificate}}
			changed := authority.Changed()
			s.put(dataOf(t, grown))
			<-changed
			if !bytes.Equal(authority.CABundle(), encodeBundle(grown.bundle)) {
				t.Error("the bundle is the old one")
			}
			expectAcceptedBy(t, authority, encodeBundle(signer.bundle), time.Now())
		})
	})
	t.Run("what does not change changes nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			authority := started(t, s)
			before := serial(t, authority)
			s.put(s.data())
			s.endWatches()
			time.Sleep(10 * time.Minute)
			if serial(t, authority) != before {
				t.Error("a new certificate was signed")
			}
		})
	})
	t.Run("a watch that ended is taken up again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			authority := started(t, s)
			for range 5 {
				time.Sleep(7 * time.Minute)
				s.endWatches()
				changed := authority.Changed()
				s.put(dataOf(t, newTestIssuer(t, 1000*time.Hour)))
				<-changed
				expectAccepted(t, authority)
			}
		})
	})
	t.Run("without permission to watch it is read again and again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			s.setFail(func(verb string) error {
				if verb == "watch" {
					return apierrors.NewForbidden(secrets, secretName, nil)
				}
				return nil
			})
			authority := started(t, s)
			expectAccepted(t, authority)
			time.Sleep(time.Hour)
			if n := s.count("get"); n < 60 || n > 140 {
				t.Errorf("read %d times in an hour, want once or twice a minute", n)
			}
			changed := authority.Changed()
			s.put(dataOf(t, newTestIssuer(t, 1000*time.Hour)))
			<-changed
			expectAccepted(t, authority)
		})
	})
}

func TestASecretThatCannotBeUsed(t *testing.T) {
	broken := map[string][]byte{signerCertificateKey: []byte("s3cret"), "of": []byte("somebody else")}

	t.Run("is told of and left alone at the start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			s.put(broken)
			authority := started(t, s)
			err := authority.Ready()
			if err == nil || !strings.Contains(err.Error(), "repair it, or delete it") || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v", err)
			}
			time.Sleep(time.Hour)
			if s.count("create") != 0 || !maps.EqualFunc(s.data(), broken, bytes.Equal) {
				t.Error("the Secret was written over")
			}
			changed := authority.Changed()
			s.put(dataOf(t, newTestIssuer(t, 1000*time.Hour)))
			<-changed
			expectAccepted(t, authority)
		})
	})
	t.Run("does not replace what was there", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			authority := started(t, s)
			bundle := authority.CABundle()
			s.put(broken)
			time.Sleep(100 * time.Hour) // renewed meanwhile
			expectAccepted(t, authority)
			if !bytes.Equal(authority.CABundle(), bundle) {
				t.Error("the bundle has changed")
			}
			if !maps.EqualFunc(s.data(), broken, bytes.Equal) {
				t.Error("the Secret was written over")
			}
		})
	})
	t.Run("is created again as it was when it is deleted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			authority := started(t, s)
			before := s.data()
			s.delete()
			time.Sleep(10 * time.Second)
			if !maps.EqualFunc(s.data(), before, bytes.Equal) {
				t.Error("the Secret is not the same again")
			}
			expectAccepted(t, authority)
		})
	})
	t.Run("is created anew when what was there has come to its end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			s.put(dataOf(t, newTestIssuer(t, 50*time.Hour)))
			authority := started(t, s)
			expectAccepted(t, authority)
			time.Sleep(51 * time.Hour)
			if err := authority.Ready(); err == nil || !strings.Contains(err.Error(), "the authority cannot sign") {
				t.Errorf("got %v", err)
			}
			s.delete()
			time.Sleep(2 * time.Minute)
			expectAccepted(t, authority)
		})
	})
}

func TestAuthorityOutlivesTheAPIServer(t *testing.T) {
	away := func(string) error { return errors.New("connection refused") }

	t.Run("when it is away at the start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			s.fail = away
			authority := started(t, s)
			if err := authority.Ready(); err == nil || !strings.Contains(err.Error(), "connection refused") {
				t.Errorf("got %v", err)
			}
			time.Sleep(time.Hour)
			if n := s.count("get"); n < 60 || n > 140 {
				t.Errorf("tried %d times in an hour, want once or twice a minute", n)
			}
			changed := authority.Changed()
			s.setFail(nil)
			<-changed
			expectAccepted(t, authority)
		})
	})
	t.Run("when it goes away later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			authority := started(t, s)
			s.setFail(away)
			s.endWatches()
			time.Sleep(200 * time.Hour)
			expectAccepted(t, authority)
		})
	})
}

func TestHandshake(t *testing.T) {
	authority := newTestAuthority(t, func(*AuthorityOptions) {})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.CABundle())
	client, server := net.Pipe()
	defer func() { _, _ = client.Close(), server.Close() }()
	accepted := make(chan error, 1)
	go func() {
		accepted <- tls.Server(server, &tls.Config{GetCertificate: authority.GetCertificate}).HandshakeContext(t.Context())
	}()
	if err := tls.Client(client, &tls.Config{RootCAs: roots, ServerName: service}).HandshakeContext(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-accepted; err != nil {
		t.Error(err)
	}
}

func BenchmarkGetCertificate(b *testing.B) {
	authority := newTestAuthority(b, func(*AuthorityOptions) {})
	for b.Loop() {
		if _, err := authority.GetCertificate(nil); err != nil {
			b.Fatal(err)
		}
	}
}
