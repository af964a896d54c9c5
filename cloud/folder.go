// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// folder stores Secrets as files for one process, so that the authority of a process on the
// host of kube-apiserver survives a restart. It implements certificate.Secrets.
type folder struct {
	dir string
	mu  sync.Mutex
}

var secretResource = schema.GroupResource{Resource: "secrets"}

func newFolder(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &folder{dir: dir}, nil
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name+".json") }

// Get implements certificate.Secrets.
func (f *folder) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read(name)
}

func (f *folder) read(name string) (*corev1.Secret, error) {
	data, err := os.ReadFile(f.path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, apierrors.NewNotFound(secretResource, name)
	case err != nil:
		return nil, err
	}
	secret := &corev1.Secret{}
	if err := json.Unmarshal(data, secret); err != nil {
		return nil, fmt.Errorf("%s is not a Secret: delete it to get a new authority", f.path(name)) // the error could contain parts of it
	}
	return secret, nil
}

// Create implements certificate.Secrets.
func (f *folder) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.read(secret.Name); !apierrors.IsNotFound(err) {
		return nil, errors.Join(err, apierrors.NewAlreadyExists(secretResource, secret.Name))
	}
	return f.write(secret, 1)
}

// Update implements certificate.Secrets.
func (f *folder) Update(_ context.Context, secret *corev1.Secret, _ metav1.UpdateOptions) (*corev1.Secret, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, err := f.read(secret.Name)
	if err != nil {
		return nil, err
	}
	if secret.ResourceVersion != "" && secret.ResourceVersion != old.ResourceVersion {
		return nil, apierrors.NewConflict(secretResource, secret.Name, errors.New("the file has changed"))
	}
	version, err := strconv.Atoi(old.ResourceVersion)
	if err != nil {
		version = 1
	}
	return f.write(secret, version+1)
}

// write replaces the file atomically, readable only by its owner.
func (f *folder) write(secret *corev1.Secret, version int) (*corev1.Secret, error) {
	secret = secret.DeepCopy()
	secret.ResourceVersion = strconv.Itoa(version)
	data, err := json.Marshal(secret)
	if err != nil {
		return nil, err
	}
	temporary := f.path(secret.Name) + ".new"
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return nil, err
	}
	return secret, os.Rename(temporary, f.path(secret.Name))
}

// Watch implements certificate.Secrets. It reports no events, since only this process
// writes the file.
func (f *folder) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	w := watch.NewRaceFreeFake()
	context.AfterFunc(ctx, w.Stop)
	return w, nil
}
