// SPDX-License-Identifier: Apache-2.0

// Package storagemigration rewrites the stored objects of a CustomResourceDefinition in its storage
// version, and then takes the other versions out of the definition's status.storedVersions.
//
// It keeps no state: a definition whose storedVersions name another version than the storage
// version has to be migrated, and an object that is stored in the storage version is not written
// by a rewrite. So whoever leads next begins again, and what was done costs it requests but no
// writes. It follows KEP-4192 (storage version migration) in what it writes and when, and needs
// neither that API nor its controller; both may work on the same definition at one time.
package storagemigration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/sallyport-io/sallyport/internal/kube/crdclient"
)

// Pace says how fast a [Migrator] is; what is zero gets its default.
type Pace struct {
	// Every is how often the definition is looked at; default 10 seconds.
	Every time.Duration
	// Settle is how long every API server has to learn of a new storage version before the
	// first object is rewritten; default 10 seconds. No API tells when they have.
	Settle time.Duration
	// Page is how many objects are listed at a time; default 500.
	Page int64
	// PerSecond is how many objects are rewritten a second; default 50.
	PerSecond float64
}

func (p *Pace) complete() {
	if p.Every == 0 {
		p.Every = 10 * time.Second
	}
	if p.Settle == 0 {
		p.Settle = 10 * time.Second
	}
	if p.Page == 0 {
		p.Page = 500
	}
	if p.PerSecond == 0 {
		p.PerSecond = 50
	}
}

// Leader tells which of several replicas migrates.
type Leader interface {
	Leading() bool
	Changed() <-chan struct{}
}

// Options are what a [Migrator] is made of. All but Pace are needed.
type Options struct {
	// CRD is the name of the definition, "plural.group".
	CRD     string
	Client  *rest.Config
	Logger  *slog.Logger
	Metrics prometheus.Registerer
	Leader  Leader
	Pace    Pace
}

// Migrator migrates the objects of one definition. Make one with [New].
type Migrator struct {
	name        string
	definitions crdclient.Interface
	metadata    metadata.Interface
	sink        events.EventSink
	events      events.EventRecorder // while it runs
	leader      Leader
	log         *slog.Logger
	limiter     *rate.Limiter
	metrics     *metrics
	pace        Pace
	detail      atomic.Pointer[string]
}

// New returns a migrator. It calls nobody.
func New(o Options) (*Migrator, error) {
	if err := Validate(o.CRD); err != nil {
		return nil, err
	}
	o.Pace.complete()
	definitions, err := crdclient.NewForConfig(o.Client)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(o.Client)
	if err != nil {
		return nil, err
	}
	sink, err := eventsclient.NewForConfig(o.Client)
	if err != nil {
		return nil, err
	}
	m := &Migrator{
		name: o.CRD, definitions: definitions, metadata: objects,
		sink: &events.EventSinkImpl{Interface: sink}, leader: o.Leader,
		log: o.Logger.With("crd", o.CRD), limiter: rate.NewLimiter(rate.Limit(o.Pace.PerSecond), max(1, int(o.Pace.PerSecond))), pace: o.Pace,
	}
	m.metrics, err = newMetrics(o.CRD, o.Metrics)
	return m, err
}

// Detail says in a few words what it does now; empty for nothing.
func (m *Migrator) Detail() string {
	if detail := m.detail.Load(); detail != nil {
		return *detail
	}
	return ""
}

func (m *Migrator) say(detail string) { m.detail.Store(&detail) }

// Run migrates while this replica leads, until ctx ends.
func (m *Migrator) Run(ctx context.Context) error {
	broadcaster := events.NewBroadcaster(m.sink)
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	m.events = broadcaster.NewRecorder(clientscheme.Scheme, fieldManager)
	for ctx.Err() == nil {
		changed := m.leader.Changed()
		if m.leader.Leading() {
			m.lead(ctx, changed)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return nil
}

// The time between two attempts of which the first one failed.
const firstRetry, longestRetry = 5 * time.Second, 5 * time.Minute

// lead looks at the definition again and again until ctx ends or another one leads.
func (m *Migrator) lead(ctx context.Context, changed <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer m.say("")
	defer m.metrics.forget()
	var t turn
	retry := firstRetry
	for ctx.Err() == nil {
		err := m.look(ctx, &t)
		delay := m.pace.Every
		switch {
		case err == nil:
			retry = firstRetry
		case errors.Is(err, errChanged): // which is no failure
			m.tell(&t, err)
		case ctx.Err() == nil:
			delay = min(wait.Jitter(retry, 0.2), max(m.pace.Every, retry))
			retry = min(2*retry, longestRetry)
			m.tell(&t, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

// turn is what a leader remembers of the definition.
type turn struct {
	done string // the resourceVersion with which nothing was left to do
	// uid and storage are what is to be migrated, and until is when every API server knows it.
	uid, storage string
	until        time.Time
	told         string                  // the last error
	reference    *corev1.ObjectReference // to the definition, for events
}

// look migrates if the definition asks for it. It returns nil if there is nothing to do, or all is
// done.
func (m *Migrator) look(ctx context.Context, t *turn) error {
	// Definitions are large: a copy without schemas tells whether one has changed.
	brief, err := m.metadata.Resource(definitionResource).Get(ctx, m.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		m.metrics.pending.Set(0)
		*t = turn{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the definition: %w", err)
	}
	if brief.ResourceVersion == t.done {
		return nil
	}
	crd, err := m.definitions.Get(ctx, m.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the definition: %w", err)
	}
	storage := storageVersion(crd)
	if storage == "" {
		return errors.New("the definition has no storage version")
	}
	t.reference = &corev1.ObjectReference{
		APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition", Name: crd.Name, UID: crd.UID, ResourceVersion: crd.ResourceVersion,
	}
	if migrated(crd, storage) {
		m.metrics.pending.Set(0)
		m.metrics.blocked.Set(0)
		m.say("")
		t.done, t.told = crd.ResourceVersion, ""
		return nil
	}
	m.metrics.pending.Set(1)
	if t.uid != string(crd.UID) || t.storage != storage {
		t.uid, t.storage, t.until = string(crd.UID), storage, time.Now().Add(m.pace.Settle)
		m.log.Info("stored objects are migrated", "storageVersion", storage, "storedVersions", crd.Status.StoredVersions, "after", m.pace.Settle)
	}
	m.say("waits until every API server stores " + storage)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(t.until)):
	}
	return m.migrate(ctx, t)
}

// migrate rewrites all objects, and prunes the definition.
func (m *Migrator) migrate(ctx context.Context, t *turn) error {
	// Only now: what is read after the wait is what every API server has had time to learn of.
	crd, err := m.definitions.Get(ctx, m.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the definition: %w", err)
	}
	if string(crd.UID) != t.uid || storageVersion(crd) != t.storage {
		return errChanged
	}
	p := pass{Migrator: m, crd: crd, storage: t.storage, began: time.Now()}
	if err := p.run(ctx); err != nil {
		return err
	}
	m.metrics.blocked.Set(float64(p.failed))
	if p.failed > 0 {
		return &blockedError{p.failed, p.reasons}
	}
	if err := m.prune(ctx, crd, t.storage); err != nil {
		return err
	}
	m.metrics.pending.Set(0)
	m.log.Info("stored objects were migrated", "storageVersion", t.storage, "objects", p.rewritten+p.unchanged, "rewritten", p.rewritten, "took", time.Since(p.began))
	m.events.Eventf(t.reference, nil, corev1.EventTypeNormal, "StorageMigrated", "Migrate",
		"All %d objects are stored as %s, %d of them were rewritten; status.storedVersions names no other version", p.rewritten+p.unchanged, t.storage, p.rewritten)
	t.told = ""
	m.say("")
	return nil
}

// errChanged says that the definition is not as it was when the objects were listed.
var errChanged = errors.New("the definition has changed meanwhile: its objects are listed once more before storedVersions is pruned")

// tell logs an error, and records an event where a person has to do something, both once for each
// reason.
func (m *Migrator) tell(t *turn, err error) {
	m.say(err.Error())
	if err.Error() == t.told {
		return
	}
	t.told = err.Error()
	if errors.Is(err, errChanged) {
		m.log.Info("migrating stored objects", "retries", err)
		return
	}
	m.log.Warn("migrating stored objects", "error", err)
	if t.reference != nil {
		m.events.Eventf(t.reference, nil, corev1.EventTypeWarning, "StorageMigrationBlocked", "Migrate", "%s", shortened(err.Error(), 1000))
	}
}

// shortened cuts what does not fit into an event.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
