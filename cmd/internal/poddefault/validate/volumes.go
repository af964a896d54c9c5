// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func checkVolume(c *typeChecker, at *field.Path, v *corev1.Volume) {
	if iscsi := v.ISCSI; iscsi != nil && iscsi.InitiatorName != nil && len(v.Name)+1+len(iscsi.TargetPortal) > 64 {
		c.invalid(at.Child("name"), v.Name, "must not have more than 64 characters together with iscsi.targetPortal and a colon, if iscsi.initiatorName is set")
	}
}

func checkEmptyDir(c *typeChecker, at *field.Path, v *corev1.EmptyDirVolumeSource) {
	if v.SizeLimit != nil && v.SizeLimit.Sign() < 0 {
		c.invalid(at.Child("sizeLimit"), v.SizeLimit.String(), "must not be negative")
	}
}

func checkISCSI(c *typeChecker, at *field.Path, v *corev1.ISCSIVolumeSource) {
	if (v.DiscoveryCHAPAuth || v.SessionCHAPAuth) && v.SecretRef == nil {
		c.required(at.Child("secretRef"), "CHAP needs it")
	}
}

func checkFC(c *typeChecker, at *field.Path, v *corev1.FCVolumeSource) {
	at, lun := at.Child("targetWWNs"), at.Child("lun")
	switch {
	case len(v.TargetWWNs) == 0 && len(v.WWIDs) == 0:
		c.required(at, "either targetWWNs or wwids must be set")
	case len(v.TargetWWNs) > 0 && len(v.WWIDs) > 0:
		c.invalid(at, v.TargetWWNs, "may not be set beside wwids")
	case len(v.TargetWWNs) > 0 && v.Lun == nil:
		c.required(lun, "targetWWNs need it")
	case len(v.TargetWWNs) > 0 && (*v.Lun < 0 || *v.Lun > 255):
		c.invalid(lun, *v.Lun, "must be in the range 0-255")
	}
}

func checkFlocker(c *typeChecker, at *field.Path, v *corev1.FlockerVolumeSource) {
	if (v.DatasetName == "") == (v.DatasetUUID == "") {
		c.invalid(at, field.OmitValueType{}, "exactly one must be set of datasetName, datasetUUID")
	}
	if strings.Contains(v.DatasetName, "/") {
		c.invalid(at.Child("datasetName"), v.DatasetName, "must not contain '/'")
	}
}

func checkQuobyte(c *typeChecker, at *field.Path, v *corev1.QuobyteVolumeSource) {
	for pair := range strings.SplitSeq(v.Registry, ",") {
		if _, _, err := net.SplitHostPort(pair); err != nil && v.Registry != "" {
			c.invalid(at.Child("registry"), v.Registry, "must be host:port, or several of these with commas")
			break
		}
	}
	if len(v.Tenant) > 64 {
		c.errs = append(c.errs, field.TooLong(at.Child("tenant"), "", 64))
	}
}

func checkAzureDisk(c *typeChecker, at *field.Path, v *corev1.AzureDiskVolumeSource) {
	at = at.Child("diskURI")
	managed := v.Kind != nil && *v.Kind == corev1.AzureManagedDisk // shared is the default kind
	switch {
	case v.DataDiskURI == "":
	case managed && !strings.HasPrefix(v.DataDiskURI, "/subscriptions/"):
		c.invalid(at, v.DataDiskURI, "must begin with /subscriptions/ for a managed disk")
	case !managed && !strings.HasPrefix(v.DataDiskURI, "https://"):
		c.invalid(at, v.DataDiskURI, "must begin with https:// for a blob disk")
	}
}

func checkCinder(c *typeChecker, at *field.Path, v *corev1.CinderVolumeSource) {
	c.secretRef(at, v.SecretRef)
}

func checkStorageOS(c *typeChecker, at *field.Path, v *corev1.StorageOSVolumeSource) {
	c.secretRef(at, v.SecretRef)
}

func (c *typeChecker) secretRef(at *field.Path, ref *corev1.LocalObjectReference) {
	if ref != nil && ref.Name == "" {
		c.required(at.Child("secretRef", "name"), "it must be set")
	}
}

func checkFlex(c *typeChecker, at *field.Path, v *corev1.FlexVolumeSource) {
	for _, key := range slices.Sorted(maps.Keys(v.Options)) {
		domain, _, _ := strings.Cut("."+strings.ToLower(key), "/")
		if strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			c.invalid(at.Child("options").Key(key), key, "keys of kubernetes.io and k8s.io are reserved")
		}
	}
}

func checkCSI(c *typeChecker, at *field.Path, v *corev1.CSIVolumeSource) {
	if at = at.Child("nodePublishSecretRef", "name"); v.NodePublishSecretRef == nil {
		return
	}
	if name := v.NodePublishSecretRef.Name; name == "" {
		c.required(at, "it must be set")
	} else {
		c.invalidEach(at, name, validation.IsDNS1123Subdomain(name))
	}
}

func checkProjected(c *typeChecker, at *field.Path, v *corev1.ProjectedVolumeSource) {
	seen := map[string]bool{}
	take := func(at *field.Path, path string, empty bool) {
		if path == "" && !empty {
			return
		}
		if seen[path] {
			c.errs = append(c.errs, field.Duplicate(at, path))
		}
		seen[path] = true
	}
	items := func(at *field.Path, items []corev1.KeyToPath) {
		for i := range items {
			take(at.Child("items").Index(i).Child("path"), items[i].Path, false)
		}
	}
	for i := range v.Sources {
		at, source := at.Child("sources").Index(i), &v.Sources[i]
		if source.Secret != nil {
			items(at.Child("secret"), source.Secret.Items)
		}
		if source.ConfigMap != nil {
			items(at.Child("configMap"), source.ConfigMap.Items)
		}
		if source.DownwardAPI != nil {
			for j := range source.DownwardAPI.Items {
				take(at.Child("downwardAPI", "items").Index(j).Child("path"), source.DownwardAPI.Items[j].Path, false)
			}
		}
		if source.ClusterTrustBundle != nil {
			take(at.Child("clusterTrustBundle", "path"), source.ClusterTrustBundle.Path, false)
		}
		if p := source.PodCertificate; p != nil {
			at := at.Child("podCertificate")
			take(at.Child("credentialBundlePath"), p.CredentialBundlePath, false)
			take(at.Child("keyPath"), p.KeyPath, false)
			take(at.Child("certificateChainPath"), p.CertificateChainPath, false)
		}
	}
}

// checkTrustBundle: the name of a signer-linked bundle begins with the signer's name
// and a colon (k8s.io/api/certificates/v1beta1, ClusterTrustBundle).
func checkTrustBundle(c *typeChecker, at *field.Path, v *corev1.ClusterTrustBundleProjection) {
	switch {
	case (v.Name == nil) == (v.SignerName == nil):
		c.invalid(at, field.OmitValueType{}, "exactly one must be set of name, signerName")
	case v.Name != nil && *v.Name != "":
		name := *v.Name
		c.invalidEach(at.Child("name"), name, validation.IsDNS1123Subdomain(name[strings.LastIndex(name, ":")+1:]))
		if v.LabelSelector != nil {
			c.invalid(at.Child("labelSelector"), field.OmitValueType{}, "may not be set beside name")
		}
	case v.SignerName != nil:
		c.signerName(at.Child("signerName"), *v.SignerName)
	}
}

func (c *typeChecker) signerName(at *field.Path, name string) {
	domain, path, found := strings.Cut(name, "/")
	if name == "" { // the table checks it
		return
	}
	if !found || !strings.Contains(domain, ".") || len(validation.IsDNS1123Subdomain(domain)) > 0 || len(validation.IsDNS1123Subdomain(path)) > 0 {
		c.invalid(at, name, "must be a domain and a path, such as example.com/signer")
		return
	}
	for label := range strings.SplitSeq(domain, ".") {
		c.invalidEach(at, name, validation.IsDNS1123Label(label))
	}
}

func checkPodCertificate(c *typeChecker, at *field.Path, v *corev1.PodCertificateProjection) {
	c.signerName(at.Child("signerName"), v.SignerName)
	if v.CredentialBundlePath == "" && v.KeyPath == "" && v.CertificateChainPath == "" {
		c.required(at, "credentialBundlePath, keyPath or certificateChainPath must be set")
	}
	const day = 24 * 3600
	if v.MaxExpirationSeconds != nil && *v.MaxExpirationSeconds > day && strings.HasPrefix(v.SignerName, "kubernetes.io/") {
		c.invalid(at.Child("maxExpirationSeconds"), *v.MaxExpirationSeconds, "must be at most %d for Kubernetes' own signers", day)
	}
	for _, key := range slices.Sorted(maps.Keys(v.UserAnnotations)) {
		c.errs = append(c.errs, validation.IsDomainPrefixedKey(at.Child("userAnnotations").Key(key), key)...)
	}
}

func checkDownwardFile(c *typeChecker, at *field.Path, f *corev1.DownwardAPIVolumeFile) {
	if f.FieldRef != nil {
		c.fieldPath(at.Child("fieldRef", "fieldPath"), f.FieldRef.FieldPath,
			"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid")
	}
	if ref := f.ResourceFieldRef; ref != nil {
		at := at.Child("resourceFieldRef")
		c.resourceField(at.Child("resource"), ref.Resource)
		if ref.ContainerName == "" {
			c.required(at.Child("containerName"), "a file is of no container by itself")
		}
	}
}

func checkClaimTemplate(c *typeChecker, at *field.Path, t *corev1.PersistentVolumeClaimTemplate) {
	at = at.Child("metadata")
	c.errs = append(c.errs, apivalidation.ValidateAnnotations(t.Annotations, at.Child("annotations"))...)
	c.errs = append(c.errs, metav1validation.ValidateLabels(t.Labels, at.Child("labels"))...)
	if rest := (metav1.ObjectMeta{Labels: t.Labels, Annotations: t.Annotations}); !reflect.DeepEqual(rest, t.ObjectMeta) {
		c.invalid(at, field.OmitValueType{}, "only labels and annotations may be set")
	}
}

func checkClaim(c *typeChecker, at *field.Path, s *corev1.PersistentVolumeClaimSpec) {
	if slices.Contains(s.AccessModes, corev1.ReadWriteOncePod) && slices.ContainsFunc(s.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool { return m != corev1.ReadWriteOncePod }) {
		c.invalid(at.Child("accessModes"), s.AccessModes, "ReadWriteOncePod may not stand beside others")
	}
	storage, ok := s.Resources.Requests[corev1.ResourceStorage]
	if requests := at.Child("resources", "requests").Key("storage"); !ok {
		c.required(requests, "it must be set")
	} else if storage.Sign() <= 0 {
		c.invalid(requests, storage.String(), "must be greater than 0")
	}
	core := func(at *field.Path, group *string, kind string) {
		if (group == nil || *group == "") && kind != "" && kind != "PersistentVolumeClaim" {
			c.invalid(at.Child("kind"), kind, "must be PersistentVolumeClaim without an apiGroup")
		}
	}
	source, ref := s.DataSource, s.DataSourceRef
	if source != nil {
		core(at.Child("dataSource"), source.APIGroup, source.Kind)
	}
	if ref != nil {
		core(at.Child("dataSourceRef"), ref.APIGroup, ref.Kind)
	}
	if source == nil || ref == nil {
		return
	}
	if ptr.Deref(ref.Namespace, "") != "" {
		c.invalid(at.Child("dataSource"), field.OmitValueType{}, "may not be set beside dataSourceRef.namespace")
	} else if source.Name != ref.Name || source.Kind != ref.Kind || !reflect.DeepEqual(source.APIGroup, ref.APIGroup) {
		c.invalid(at.Child("dataSource"), field.OmitValueType{}, "must be the same as dataSourceRef")
	}
}

func checkMount(c *typeChecker, at *field.Path, m *corev1.VolumeMount) {
	if m.SubPath != "" && m.SubPathExpr != "" {
		c.invalid(at.Child("subPathExpr"), m.SubPathExpr, "may not be set beside subPath")
	}
	if r := m.RecursiveReadOnly; r != nil && *r != corev1.RecursiveReadOnlyDisabled {
		if !m.ReadOnly {
			c.invalid(at.Child("recursiveReadOnly"), *r, "readOnly must be true")
		}
		if p := m.MountPropagation; p != nil && *p != corev1.MountPropagationNone {
			c.invalid(at.Child("recursiveReadOnly"), *r, "mountPropagation must be None or absent")
		}
	}
	for i, option := range m.BindMountOptions {
		if slices.Contains(m.BindMountOptions[:i], option) {
			c.errs = append(c.errs, field.Duplicate(at.Child("bindMountOptions").Index(i), option))
		}
	}
}
