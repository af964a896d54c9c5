// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// propagation is the setting of the simulated cluster. It must exceed the sum of
	// the three delays.
	propagation   = 4 * time.Second
	maxLag        = 1200 * time.Millisecond // of a replica's watches
	apiServersLag = 500 * time.Millisecond  // of API servers behind what is stored
	checkEvery    = 50 * time.Millisecond
)

// bundles are the CA bundles of webhook configurations, with their history.
type bundles struct {
	mu      sync.Mutex
	history [][]bundleVersion // by configuration
}

type bundleVersion struct {
	bundle []byte
	from   time.Time
}

func (b *bundles) write(configuration int, bundle []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	versions := b.history[configuration]
	if n := len(versions); n > 0 && bytes.Equal(versions[n-1].bundle, bundle) {
		return
	}
	b.history[configuration] = append(b.history[configuration], bundleVersion{bundle, time.Now()})
}

// between returns the bundles that some client up to lag behind may use.
func (b *bundles) between(lag time.Duration) [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all [][]byte
	since := time.Now().Add(-lag)
	for _, versions := range b.history {
		for i, version := range versions {
			if i+1 == len(versions) || versions[i+1].from.After(since) {
				all = append(all, version.bundle)
			}
		}
	}
	return all
}

// at returns the bundles at a moment.
func (b *bundles) at(moment time.Time) [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all [][]byte
	for _, versions := range b.history {
		var found []byte
		for _, version := range versions {
			if !version.from.After(moment) {
				found = version.bundle
			}
		}
		if found != nil {
			all = append(all, found)
		}
	}
	return all
}

// lagging is the store as seen by a replica whose watch lags behind.
type lagging struct {
	*store
	lag time.Duration
}

func (l lagging) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	inner, err := l.store.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	out := make(chan watch.Event)
	late := watch.NewProxyWatcher(out)
	go func() {
		defer close(out)
		defer inner.Stop()
		for {
			select {
			case <-late.StopChan():
				return
			case event, open := <-inner.ResultChan():
				if !open {
					return
				}
				select {
				case <-late.StopChan():
					return
				case <-time.After(l.lag):
				}
				select {
				case <-late.StopChan():
					return
				case out <- event:
				}
			}
		}
	}()
	return late, nil
}

// cluster is a simulation: replicas with the code under test, a store of Secrets,
// webhook configurations, and leader election.
type cluster struct {
	t       *testing.T
	random  *rand.Rand
	secrets *store
	bundles bundles

	accepted map[string]bool // what check has found good, by certificate and bundle

	mu       sync.Mutex
	leaders  map[int]bool
	replicas []*replica
}

type replica struct {
	authority *Authority
	lag       time.Duration
	stop      context.CancelFunc
	ended     sync.WaitGroup
}

func newCluster(t *testing.T, seed uint64, replicas, configurations int) *cluster {
	c := &cluster{t: t, random: rand.New(rand.NewPCG(seed, 1)), secrets: newStore(), leaders: map[int]bool{}, accepted: map[string]bool{}}
	c.bundles.history = make([][]bundleVersion, configurations)
	for i := range replicas {
		c.replicas = append(c.replicas, nil)
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.replicas {
			c.stop(i)
		}
		synctest.Wait()
	})
	return c
}

func (c *cluster) leads(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaders[i]
}

func (c *cluster) elect(leaders ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaders = map[int]bool{}
	for _, i := range leaders {
		c.leaders[i] = true
	}
}

func (c *cluster) start(i int) {
	r := &replica{lag: time.Duration(c.random.Int64N(int64(maxLag)))}
	began := time.Now()
	r.authority = newTestAuthority(c.t, func(o *AuthorityOptions) {
		o.Secrets = lagging{c.secrets, r.lag}
		o.Propagation = propagation
		o.Leading = func() bool { return c.leads(i) }
		o.Published = func() ([][]byte, error) {
			if time.Since(began) < r.lag {
				return nil, errors.New("the cache is not filled")
			}
			return c.bundles.at(time.Now().Add(-r.lag)), nil
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.ended.Go(func() { _ = r.authority.Run(ctx) })
	pause := time.Duration(1+c.random.Int64N(500)) * time.Millisecond
	r.ended.Go(func() { // writes the webhook configurations, as registration does
		for ctx.Err() == nil {
			if bundle := r.authority.CABundle(); bundle != nil && r.authority.Ready() == nil {
				for configuration := range c.bundles.history {
					if c.leads(i) {
						c.bundles.write(configuration, bundle)
					}
					sleep(ctx, pause)
				}
			} else {
				sleep(ctx, pause)
			}
		}
	})
	c.replicas[i] = r
}

func (c *cluster) stop(i int) {
	c.replicas[i].stop()
	c.replicas[i].ended.Wait()
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// check checks that every API server accepts every replica.
func (c *cluster) check(what string) {
	c.t.Helper()
	for _, bundle := range c.bundles.between(apiServersLag) {
		for i, r := range c.replicas {
			served, err := r.authority.GetCertificate(nil)
			if err != nil {
				continue // it is not ready, and not called
			}
			key := string(served.Certificate[0]) + string(bundle)
			if c.accepted[key] {
				continue
			}
			c.accepted[key] = true
			if err := trusted(served, certificatesIn(bundle), time.Now()); err != nil {
				c.t.Fatalf("%s, %s after the beginning: replica %d (leads: %t): %v", what, time.Since(synctestEpoch), i, c.leads(i), err)
			}
		}
	}
}

// synctestEpoch is when the clock of a synctest bubble begins.
var synctestEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// live lets time pass while checking.
func (c *cluster) live(what string, d time.Duration) {
	c.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(checkEvery)
		synctest.Wait()
		c.check(what)
	}
}

// ask requests a rotation, as an administrator would.
func (c *cluster) ask() error {
	_, err := RequestRotation(context.Background(), c.secrets, secretName, time.Now())
	return err
}

func (c *cluster) status() *Status {
	c.secrets.mu.Lock()
	defer c.secrets.mu.Unlock()
	if c.secrets.secret == nil {
		return nil
	}
	status, err := ReadStatus(c.secrets.secret)
	if err != nil {
		c.t.Fatal(err)
	}
	return status
}

// reach waits until a rotation is in a phase.
func (c *cluster) reach(phase Phase) {
	c.t.Helper()
	for range 600 {
		if c.status().Phase == phase {
			return
		}
		c.live("on the way", checkEvery)
	}
	c.t.Fatalf("the rotation is never in the phase %s", phase)
}

// settle waits until no rotation is in progress and all requested ones are done.
func (c *cluster) settle() *Status {
	c.t.Helper()
	for range 60 {
		c.live("settling", time.Second)
		if status := c.status(); status != nil && status.Phase == PhaseSteady && status.Requested.IsZero() {
			return status
		}
	}
	c.t.Fatalf("the rotation does not end: %+v", c.status())
	return nil
}

func TestNoReplicaIsEverRefused(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				replicas := 2 + int(seed%3)
				c := newCluster(t, seed, replicas, 2)
				c.elect(0)
				c.live("starting", 5*time.Second)
				before := c.settle().Signer
				rotations, signer := 0, before
				for range 60 {
					switch c.random.IntN(8) {
					case 0, 1:
						if err := c.ask(); err != nil && !errors.Is(err, errRotating) && c.status() != nil {
							t.Fatal(err)
						}
					case 2:
						c.elect(c.random.IntN(replicas))
					case 3:
						c.elect() // nobody
					case 4:
						c.elect(c.random.IntN(replicas), c.random.IntN(replicas))
					case 5:
						i := c.random.IntN(replicas)
						c.stop(i)
						c.start(i)
					case 6:
						c.secrets.endWatches()
					case 7:
						if c.status() != nil {
							c.secrets.delete()
						}
					}
					c.live("in turmoil", time.Duration(c.random.Int64N(int64(3*time.Second))))
					if status := c.status(); status != nil && !status.Signer.Equal(signer) {
						rotations, signer = rotations+1, status.Signer
					}
				}
				c.elect(c.random.IntN(replicas))
				c.settle()
				_ = c.ask() // one may be on again, because of a deletion
				last := c.settle()
				if last.Signer.Equal(before) {
					t.Error("nothing was rotated")
				}
				c.live("at rest", propagation)
				for i, r := range c.replicas {
					served, err := r.authority.GetCertificate(nil)
					if err != nil || trusted(served, last.Bundle, time.Now()) != nil || len(last.Bundle) != 1 {
						t.Errorf("replica %d does not serve what the Secret says (%v)", i, err)
					}
				}
				t.Logf("%d changes of the signer", rotations)
			})
		})
	}
}

func TestAnAuthorityThatIsReplacedByHandHurtsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 7, 3, 2)
		c.elect(1)
		c.live("starting", 5*time.Second) // until all of them serve
		c.settle()
		for range 3 {
			other := newTestIssuer(t, tenYears)
			before := c.replicas[1].authority.PathKeys()[0]
			c.secrets.put(dataOf(t, other))
			c.live("replaced by hand", propagation/2)
			if keys := c.replicas[1].authority.PathKeys(); len(keys) != 2 || string(keys[0]) != string(before) {
				t.Error("paths are registered that others may not know yet")
			}
			c.live("replaced by hand", propagation)
			for i, r := range c.replicas {
				if keys := r.authority.PathKeys(); len(keys) != 2 || string(keys[1]) != string(before) {
					t.Errorf("replica %d does not answer both paths, the new one registered", i)
				}
			}
			c.live("replaced by hand", 3*propagation)
			for i, r := range c.replicas {
				served, err := r.authority.GetCertificate(nil)
				if err != nil || trusted(served, other.bundle, time.Now()) != nil {
					t.Errorf("replica %d does not serve what the Secret says (%v)", i, err)
				}
				if keys := r.authority.PathKeys(); len(keys) != 1 {
					t.Errorf("replica %d answers paths of %d authorities", i, len(keys))
				}
			}
			for _, bundle := range c.bundles.at(time.Now()) {
				if len(certificatesIn(bundle)) != 1 {
					t.Error("the old authority is published still")
				}
			}
		}
	})
}

func TestACertificateIsHeldBackUntilClientsTrustIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		var mu sync.Mutex
		var published [][]byte
		var unknown error
		tell := func(err error, bundles ...[]byte) {
			mu.Lock()
			defer mu.Unlock()
			published, unknown = bundles, err
		}
		authority := newTestAuthority(t, func(o *AuthorityOptions) {
			o.Secrets = s
			o.CertificateLifetime, o.Propagation = time.Hour, propagation
			o.Leading = func() bool { return false }
			o.Published = func() ([][]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				return published, unknown
			}
		})
		run(t, authority)
		synctest.Wait()
		before, old := serial(t, authority), authority.CABundle()
		tell(nil, old)
		next := newTestIssuer(t, tenYears)
		s.put(dataOf(t, next))
		time.Sleep(10 * time.Second)
		if serial(t, authority) != before {
			t.Error("it serves what no client trusts")
		}
		if len(certificatesIn(authority.CABundle())) != 2 {
			t.Error("clients are not told of both")
		}
		tell(errors.New("the cache is gone"))
		time.Sleep(10 * time.Second)
		if serial(t, authority) != before {
			t.Error("it changes in the dark")
		}
		time.Sleep(41 * time.Minute) // it is renewed by the one that is trusted
		expectAcceptedBy(t, authority, old, time.Now())
		if serial(t, authority) == before {
			t.Error("it is not renewed")
		}
		tell(nil, authority.CABundle())
		time.Sleep(2 * time.Second) // other API servers may not have seen it yet
		expectAcceptedBy(t, authority, old, time.Now())
		time.Sleep(propagation)
		expectAcceptedBy(t, authority, encodeBundle(next.bundle), time.Now())
		if err := authority.Ready(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnAuthorityIsFollowedByAnotherInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 2, 1)
		// Two thirds of its lifetime, which began a day before, are over in 20 s.
		short, err := newIssuer(time.Now().Add(-100*time.Hour), 162*time.Hour+30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		c.secrets.put(dataOf(t, short))
		c.elect(0)
		c.live("young", 19*time.Second)
		if status := c.status(); !status.Signer.Equal(short.certificate) || status.Phase != PhaseSteady {
			t.Fatalf("replaced before two thirds of its time: %s", status.Phase)
		}
		c.live("of age", time.Minute+2*time.Second)
		if status := c.settle(); status.Signer.Equal(short.certificate) {
			t.Error("not replaced after two thirds of its time")
		}
	})
}

func TestPathKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle := newTestAuthority(t, func(o *AuthorityOptions) { o.Secrets = newStore() })
		if keys := idle.PathKeys(); keys != nil {
			t.Errorf("%d keys of nothing", len(keys))
		}
		c := newCluster(t, 5, 2, 1)
		c.elect(0)
		c.settle()
		same := func(want int) [][]byte {
			t.Helper()
			time.Sleep(2 * maxLag)
			a, b := c.replicas[0].authority.PathKeys(), c.replicas[1].authority.PathKeys()
			if len(a) != want || len(b) != want {
				t.Fatalf("%d and %d keys, want %d", len(a), len(b), want)
			}
			for i := range a {
				if len(a[i]) != 32 || string(a[i]) != string(b[i]) {
					t.Errorf("key %d: %d bytes, or not the same in all replicas", i, len(a[i]))
				}
			}
			return a
		}
		before := same(1)
		if err := c.ask(); err != nil {
			t.Fatal(err)
		}
		c.reach(PhasePublishing)
		during := same(2)
		c.reach(PhaseSigning)
		signing := same(2)
		c.settle()
		after := same(1)
		if string(during[0]) != string(before[0]) || string(signing[0]) != string(during[1]) || string(signing[1]) != string(before[0]) || string(after[0]) != string(signing[0]) {
			t.Error("the key of the signer is not the first one, with that of the other after it")
		}
	})
}
