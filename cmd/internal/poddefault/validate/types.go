// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"encoding/json"
	"maps"
	"net"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// A typeRule checks a value of a type beyond its single fields. Value is a pointer to
// it.
type typeRule func(c *checker, at *field.Path, value any)

func rule[T any](check func(c *checker, at *field.Path, value *T)) (reflect.Type, typeRule) {
	return typeOf[T](), func(c *checker, at *field.Path, value any) { check(c, at, value.(*T)) }
}

// typeRules are the rules of each type, wherever it occurs.
var typeRules = func() map[reflect.Type]typeRule {
	rules := map[reflect.Type]typeRule{}
	add := func(t reflect.Type, r typeRule) { rules[t] = r }
	add(rule(checkLabelSelector))
	add(rule(checkEnvVar))
	add(rule(checkDivisor))
	add(rule(checkVolume))
	add(rule(checkEmptyDir))
	add(rule(checkISCSI))
	add(rule(checkFC))
	add(rule(checkFlocker))
	add(rule(checkQuobyte))
	add(rule(checkAzureDisk))
	add(rule(checkCinder))
	add(rule(checkStorageOS))
	add(rule(checkFlex))
	add(rule(checkCSI))
	add(rule(checkProjected))
	add(rule(checkTrustBundle))
	add(rule(checkPodCertificate))
	add(rule(checkDownwardFile))
	add(rule(checkClaimTemplate))
	add(rule(checkClaim))
	add(rule(checkMount))
	add(rule(checkContainer))
	add(rule(checkResources))
	add(rule(checkHTTPGet))
	add(rule(checkTCPSocket))
	add(rule(checkSecurityContext))
	add(rule(checkSeccomp))
	add(rule(checkAppArmor))
	add(rule(checkWindows))
	add(rule(checkToleration))
	add(rule(checkSpread))
	add(rule(checkNodeSelector))
	add(rule(checkNodeTerm))
	add(rule(checkPodTerm))
	add(rule(checkHostAlias))
	return rules
}()

func checkLabelSelector(c *checker, at *field.Path, s *metav1.LabelSelector) {
	for _, err := range metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at) {
		if !strings.HasSuffix(err.Field, ".operator") { // the table checks it
			c.errs = append(c.errs, err)
		}
	}
}

// Variables.

func checkEnvVar(c *checker, at *field.Path, e *corev1.EnvVar) {
	if e.ValueFrom == nil {
		return
	}
	at = at.Child("valueFrom")
	if e.Value != "" {
		c.invalid(at, field.OmitValueType{}, "may not be set beside a value")
	}
	if ref := e.ValueFrom.FieldRef; ref != nil {
		c.fieldPath(at.Child("fieldRef", "fieldPath"), ref.FieldPath,
			"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
			"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
	}
	if ref := e.ValueFrom.ResourceFieldRef; ref != nil {
		c.resourceField(at.Child("resourceFieldRef", "resource"), ref.Resource)
	}
}

var subscripted = regexp.MustCompile(`^(metadata\.(?:annotations|labels))\['(.*)'\]$`)

// fieldPath checks which pod field a variable or file may use.
func (c *checker) fieldPath(at *field.Path, path string, choices ...string) {
	switch parts := subscripted.FindStringSubmatch(path); {
	case path == "": // the table checks it
	case len(parts) > 0 && parts[1] == "metadata.annotations":
		c.invalidEach(at, path, validation.IsQualifiedName(strings.ToLower(parts[2])))
	case len(parts) > 0:
		c.invalidEach(at, path, validation.IsQualifiedName(parts[2]))
	default:
		// The API server still accepts it as an alias of spec.nodeName.
		if path == "spec.host" && slices.Contains(choices, "spec.nodeName") {
			return
		}
		c.oneOf(at, path, choices...)
	}
}

var resourceFields = []string{"limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage"}

func (c *checker) resourceField(at *field.Path, name string) {
	if !strings.HasPrefix(name, "limits.hugepages-") && !strings.HasPrefix(name, "requests.hugepages-") {
		c.oneOf(at, name, resourceFields...)
	}
}

func checkDivisor(c *checker, at *field.Path, ref *corev1.ResourceFieldSelector) {
	at, divisor := at.Child("divisor"), ref.Divisor.String()
	switch {
	case ref.Divisor.IsZero():
	case strings.HasSuffix(ref.Resource, ".cpu"):
		c.oneOf(at, divisor, "1", "1m")
	default:
		c.oneOf(at, divisor, "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
	}
}

// Volumes.

func checkVolume(c *checker, at *field.Path, v *corev1.Volume) {
	if iscsi := v.ISCSI; iscsi != nil && iscsi.InitiatorName != nil && len(v.Name)+1+len(iscsi.TargetPortal) > 64 {
		c.invalid(at.Child("name"), v.Name, "must not have more than 64 characters together with iscsi.targetPortal and a colon, if iscsi.initiatorName is set")
	}
}

func checkEmptyDir(c *checker, at *field.Path, v *corev1.EmptyDirVolumeSource) {
	if v.SizeLimit != nil && v.SizeLimit.Sign() < 0 {
		c.invalid(at.Child("sizeLimit"), v.SizeLimit.String(), "must not be negative")
	}
}

func checkISCSI(c *checker, at *field.Path, v *corev1.ISCSIVolumeSource) {
	if (v.DiscoveryCHAPAuth || v.SessionCHAPAuth) && v.SecretRef == nil {
		c.required(at.Child("secretRef"), "CHAP needs it")
	}
}

func checkFC(c *checker, at *field.Path, v *corev1.FCVolumeSource) {
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

func checkFlocker(c *checker, at *field.Path, v *corev1.FlockerVolumeSource) {
	if (v.DatasetName == "") == (v.DatasetUUID == "") {
		c.invalid(at, field.OmitValueType{}, "exactly one must be set of datasetName, datasetUUID")
	}
	if strings.Contains(v.DatasetName, "/") {
		c.invalid(at.Child("datasetName"), v.DatasetName, "must not contain '/'")
	}
}

func checkQuobyte(c *checker, at *field.Path, v *corev1.QuobyteVolumeSource) {
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

func checkAzureDisk(c *checker, at *field.Path, v *corev1.AzureDiskVolumeSource) {
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

func checkCinder(c *checker, at *field.Path, v *corev1.CinderVolumeSource) {
	c.secretRef(at, v.SecretRef)
}

func checkStorageOS(c *checker, at *field.Path, v *corev1.StorageOSVolumeSource) {
	c.secretRef(at, v.SecretRef)
}

func (c *checker) secretRef(at *field.Path, ref *corev1.LocalObjectReference) {
	if ref != nil && ref.Name == "" {
		c.required(at.Child("secretRef", "name"), "it must be set")
	}
}

func checkFlex(c *checker, at *field.Path, v *corev1.FlexVolumeSource) {
	for _, key := range slices.Sorted(maps.Keys(v.Options)) {
		domain, _, _ := strings.Cut("."+strings.ToLower(key), "/")
		if strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			c.invalid(at.Child("options").Key(key), key, "keys of kubernetes.io and k8s.io are reserved")
		}
	}
}

func checkCSI(c *checker, at *field.Path, v *corev1.CSIVolumeSource) {
	if at = at.Child("nodePublishSecretRef", "name"); v.NodePublishSecretRef == nil {
		return
	}
	if name := v.NodePublishSecretRef.Name; name == "" {
		c.required(at, "it must be set")
	} else {
		c.invalidEach(at, name, validation.IsDNS1123Subdomain(name))
	}
}

func checkProjected(c *checker, at *field.Path, v *corev1.ProjectedVolumeSource) {
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
func checkTrustBundle(c *checker, at *field.Path, v *corev1.ClusterTrustBundleProjection) {
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

func (c *checker) signerName(at *field.Path, name string) {
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

func checkPodCertificate(c *checker, at *field.Path, v *corev1.PodCertificateProjection) {
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

func checkDownwardFile(c *checker, at *field.Path, f *corev1.DownwardAPIVolumeFile) {
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

func checkClaimTemplate(c *checker, at *field.Path, t *corev1.PersistentVolumeClaimTemplate) {
	at = at.Child("metadata")
	c.errs = append(c.errs, apivalidation.ValidateAnnotations(t.Annotations, at.Child("annotations"))...)
	c.errs = append(c.errs, metav1validation.ValidateLabels(t.Labels, at.Child("labels"))...)
	if rest := (metav1.ObjectMeta{Labels: t.Labels, Annotations: t.Annotations}); !reflect.DeepEqual(rest, t.ObjectMeta) {
		c.invalid(at, field.OmitValueType{}, "only labels and annotations may be set")
	}
}

func checkClaim(c *checker, at *field.Path, s *corev1.PersistentVolumeClaimSpec) {
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
	if deref(ref.Namespace) != "" {
		c.invalid(at.Child("dataSource"), field.OmitValueType{}, "may not be set beside dataSourceRef.namespace")
	} else if source.Name != ref.Name || source.Kind != ref.Kind || !reflect.DeepEqual(source.APIGroup, ref.APIGroup) {
		c.invalid(at.Child("dataSource"), field.OmitValueType{}, "must be the same as dataSourceRef")
	}
}

func checkMount(c *checker, at *field.Path, m *corev1.VolumeMount) {
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

// Containers.

func checkContainer(c *checker, at *field.Path, t *corev1.Container) {
	distinct(c, at.Child("volumeMounts"), "mountPath", t.VolumeMounts, func(m *corev1.VolumeMount) string { return m.MountPath })
	distinct(c, at.Child("volumeDevices"), "devicePath", t.VolumeDevices, func(d *corev1.VolumeDevice) string { return d.DevicePath })
	distinct(c, at.Child("volumeDevices"), "name", t.VolumeDevices, func(d *corev1.VolumeDevice) string { return d.Name })
	c.mountsAndDevices(at, t.VolumeMounts, t.VolumeDevices)
	if len(t.RestartPolicyRules) > 0 && t.RestartPolicy == nil {
		c.required(at.Child("restartPolicy"), "restartPolicyRules need it")
	}
	if len(t.RestartPolicyRules) > 20 {
		c.errs = append(c.errs, field.TooMany(at.Child("restartPolicyRules"), len(t.RestartPolicyRules), 20))
	}
	for i, r := range t.RestartPolicyRules {
		if r.ExitCodes != nil && len(r.ExitCodes.Values) > 255 {
			c.errs = append(c.errs, field.TooMany(at.Child("restartPolicyRules").Index(i).Child("exitCodes", "values"), len(r.ExitCodes.Values), 255))
		}
	}
	distinct(c, at.Child("resizePolicy"), "resourceName", t.ResizePolicy, func(p *corev1.ContainerResizePolicy) string { return string(p.ResourceName) })
	distinct(c, at.Child("ports"), "name", t.Ports, func(p *corev1.ContainerPort) string { return p.Name })
	for _, probe := range []struct {
		name  string
		probe *corev1.Probe
	}{{"livenessProbe", t.LivenessProbe}, {"startupProbe", t.StartupProbe}} {
		if probe.probe != nil && probe.probe.SuccessThreshold > 1 {
			c.invalid(at.Child(probe.name, "successThreshold"), probe.probe.SuccessThreshold, "must be 1")
		}
	}
	if probe := t.ReadinessProbe; probe != nil && probe.TerminationGracePeriodSeconds != nil {
		c.invalid(at.Child("readinessProbe", "terminationGracePeriodSeconds"), *probe.TerminationGracePeriodSeconds, "may not be set for readiness")
	}
	privileged := t.SecurityContext != nil && t.SecurityContext.Privileged != nil && *t.SecurityContext.Privileged
	for i, mount := range t.VolumeMounts {
		if p := mount.MountPropagation; p != nil && *p == corev1.MountPropagationBidirectional && !privileged {
			c.invalid(at.Child("volumeMounts").Index(i).Child("mountPropagation"), *p, "the container must be privileged")
		}
	}
}

// distinct reports elements with the key of an earlier one, in lists that pods take
// unchanged.
func distinct[T any](c *checker, path *field.Path, keyField string, list []T, key func(*T) string) {
	seen := make(map[string]bool, len(list))
	for i := range list {
		k := key(&list[i])
		if seen[k] && k != "" {
			c.errs = append(c.errs, field.Duplicate(path.Index(i).Child(keyField), k))
		}
		seen[k] = true
	}
}

// mountsAndDevices checks one container's mounts and devices, which share paths and
// volumes.
func (c *checker) mountsAndDevices(at *field.Path, mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) {
	if len(devices) == 0 {
		return
	}
	paths, volumes := map[string]bool{"": false}, map[string]bool{"": false}
	for i := range mounts {
		paths[mounts[i].MountPath], volumes[mounts[i].Name] = mounts[i].MountPath != "", mounts[i].Name != ""
	}
	for i, device := range devices {
		at := at.Child("volumeDevices").Index(i)
		if paths[device.DevicePath] {
			c.invalid(at.Child("devicePath"), device.DevicePath, "it is a mountPath in volumeMounts too")
		}
		if volumes[device.Name] {
			c.invalid(at.Child("name"), device.Name, "the volume is in volumeMounts too")
		}
	}
}

// checkResources checks compute resources. A name without a domain must be known to
// Kubernetes. A name with a domain is an extended resource, counted in whole numbers,
// whose request equals its limit.
func checkResources(c *checker, at *field.Path, r *corev1.ResourceRequirements) {
	hugePages, cpuOrMemory := false, false
	for _, list := range []struct {
		field  string
		values corev1.ResourceList
	}{{"requests", r.Requests}, {"limits", r.Limits}} {
		for _, name := range slices.Sorted(maps.Keys(list.values)) {
			at, quantity := at.Child(list.field).Key(string(name)), list.values[name]
			c.resource(at, name, quantity)
			pages := strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
			hugePages = hugePages || pages
			cpuOrMemory = cpuOrMemory || name == corev1.ResourceCPU || name == corev1.ResourceMemory
			limit, limited := r.Limits[name]
			if list.field != "requests" {
				continue
			}
			switch whole := pages || meta.Extended(name); {
			case whole && !limited:
				c.required(at, "a limit must be set beside it")
			case whole && quantity.Cmp(limit) != 0:
				c.invalid(at, quantity.String(), "must be equal to the limit %s", limit.String())
			case limited && quantity.Cmp(limit) > 0:
				c.invalid(at, quantity.String(), "must not be larger than the limit %s", limit.String())
			}
		}
	}
	if hugePages && !cpuOrMemory {
		c.invalid(at, field.OmitValueType{}, "huge pages need a request or limit of cpu or memory")
	}
	at = at.Child("claims")
	distinct(c, at, "request", r.Claims, func(r *corev1.ResourceClaim) string { return r.Name + "/" + r.Request })
	for i, claim := range r.Claims {
		if claim.Request != "" && slices.Contains(r.Claims, corev1.ResourceClaim{Name: claim.Name}) {
			c.errs = append(c.errs, field.Duplicate(at.Index(i).Child("name"), claim.Name))
		}
	}
}

func (c *checker) resource(at *field.Path, name corev1.ResourceName, quantity resource.Quantity) {
	text := string(name)
	if problems := validation.IsQualifiedName(text); len(problems) > 0 {
		c.invalidEach(at, text, problems)
	} else if pageSize, ok := strings.CutPrefix(text, corev1.ResourceHugePagesPrefix); ok {
		if size, err := resource.ParseQuantity(pageSize); err != nil || size.Sign() <= 0 || size.MilliValue()%1000 != 0 || quantity.Value()%size.Value() != 0 {
			c.invalid(at, quantity.String(), "must be a multiple of the size of a page")
		}
	} else if !strings.Contains(text, "/") {
		c.oneOf(at, text, "cpu", "memory", "ephemeral-storage")
	} else if meta.Extended(name) {
		if strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) {
			c.invalid(at, text, "must not begin with requests.")
		}
		c.invalidEach(at, text, validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+text))
		if quantity.MilliValue()%1000 != 0 {
			c.invalid(at, quantity.String(), "must be a whole number")
		}
	}
	if quantity.Sign() < 0 {
		c.invalid(at, quantity.String(), "must not be negative")
	}
}

func (c *checker) portNumberOrName(at *field.Path, port intstr.IntOrString) {
	if port.Type == intstr.Int {
		c.invalidEach(at, port.IntValue(), validation.IsValidPortNum(port.IntValue()))
	} else {
		c.invalidEach(at, port.StrVal, validation.IsValidPortName(port.StrVal))
	}
}

func checkHTTPGet(c *checker, at *field.Path, a *corev1.HTTPGetAction) {
	c.portNumberOrName(at.Child("port"), a.Port)
	if a.Protocol != nil && *a.Protocol == corev1.HTTPProtocolHTTP2 {
		if a.Scheme == corev1.URISchemeHTTPS {
			c.invalid(at.Child("protocol"), *a.Protocol, "the scheme must be HTTP")
		}
		if a.Host != "" {
			c.invalid(at.Child("host"), a.Host, "may not be set beside the protocol HTTP2")
		}
	}
}

func checkTCPSocket(c *checker, at *field.Path, a *corev1.TCPSocketAction) {
	c.portNumberOrName(at.Child("port"), a.Port)
}

// Security.

func checkSecurityContext(c *checker, at *field.Path, s *corev1.SecurityContext) {
	is := func(b *bool, value bool) bool { return b != nil && *b == value }
	if !is(s.AllowPrivilegeEscalation, false) {
		return
	}
	if is(s.Privileged, true) {
		c.invalid(at.Child("allowPrivilegeEscalation"), false, "may not be false beside privileged: true")
	}
	if s.Capabilities != nil && slices.Contains(s.Capabilities.Add, "CAP_SYS_ADMIN") {
		c.invalid(at.Child("allowPrivilegeEscalation"), false, "may not be false beside the capability CAP_SYS_ADMIN")
	}
}

func checkSeccomp(c *checker, at *field.Path, p *corev1.SeccompProfile) {
	c.localhostProfile(at, p.Type == corev1.SeccompProfileTypeLocalhost, p.LocalhostProfile)
}

func checkAppArmor(c *checker, at *field.Path, p *corev1.AppArmorProfile) {
	c.localhostProfile(at, p.Type == corev1.AppArmorProfileTypeLocalhost, p.LocalhostProfile)
	if text := deref(p.LocalhostProfile); strings.TrimSpace(text) != text || len(text) > 4095 {
		c.invalid(at.Child("localhostProfile"), text, "must have at most 4095 characters and no spaces around them")
	}
}

func (c *checker) localhostProfile(at *field.Path, local bool, profile *string) {
	at = at.Child("localhostProfile")
	if local && profile == nil {
		c.required(at, "the type Localhost needs it")
	} else if !local && profile != nil {
		c.invalid(at, *profile, "may be set with the type Localhost alone")
	}
}

var (
	windowsDomain = compiledOnce(`^([^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}|[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*)$`)
	windowsUser   = compiledOnce(`^[^"/\\:;|=,+*?<>@\[\][:cntrl:]]{1,104}$`)
)

func checkWindows(c *checker, at *field.Path, w *corev1.WindowsSecurityContextOptions) {
	if len(deref(w.GMSACredentialSpec)) > 64*1024 {
		c.errs = append(c.errs, field.TooLong(at.Child("gmsaCredentialSpec"), "", 64*1024))
	}
	if name := deref(w.RunAsUserName); name != "" {
		domain, user, found := strings.Cut(name, `\`)
		if !found {
			domain, user = "X", name
		}
		if len(domain) > 255 || !windowsDomain().MatchString(domain) || !windowsUser().MatchString(user) || strings.Trim(user, ". ") == "" {
			c.invalid(at.Child("runAsUserName"), name, `must be a user of Windows, or DOMAIN\USER`)
		}
	}
}

// Scheduling and the network.

func checkToleration(c *checker, at *field.Path, t *corev1.Toleration) {
	if t.Key == "" && t.Operator != corev1.TolerationOpExists {
		c.invalid(at.Child("operator"), t.Operator, "must be Exists without a key")
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		c.invalid(at.Child("effect"), t.Effect, "must be NoExecute beside tolerationSeconds")
	}
	at = at.Child("value")
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		c.invalidEach(at, t.Value, validation.IsValidLabelValue(t.Value))
	case corev1.TolerationOpExists:
		if t.Value != "" {
			c.invalid(at, t.Value, "may not be set beside the operator Exists")
		}
	case corev1.TolerationOpLt, corev1.TolerationOpGt:
		if number, err := strconv.ParseInt(t.Value, 10, 64); err != nil || strconv.FormatInt(number, 10) != t.Value {
			c.invalid(at, t.Value, "must be a whole number")
		}
	}
}

func checkSpread(c *checker, at *field.Path, t *corev1.TopologySpreadConstraint) {
	if t.MinDomains != nil && t.WhenUnsatisfiable != corev1.DoNotSchedule {
		c.invalid(at.Child("minDomains"), *t.MinDomains, "whenUnsatisfiable must be DoNotSchedule")
	}
	c.labelKeys(at.Child("matchLabelKeys"), t.MatchLabelKeys, t.LabelSelector, true)
}

// labelKeys checks label keys whose values a term takes from the pod.
func (c *checker) labelKeys(at *field.Path, keys []string, selector *metav1.LabelSelector, distinct bool) {
	if len(keys) > 0 && selector == nil {
		c.invalid(at, keys, "may be set beside a labelSelector alone")
		return
	}
	for i, key := range keys {
		if !distinct {
			break
		}
		_, taken := selector.MatchLabels[key]
		if taken || slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == key }) {
			c.invalid(at.Index(i), key, "is in labelSelector too")
		}
	}
}

func checkPodTerm(c *checker, at *field.Path, t *corev1.PodAffinityTerm) {
	c.labelKeys(at.Child("matchLabelKeys"), t.MatchLabelKeys, t.LabelSelector, true)
	c.labelKeys(at.Child("mismatchLabelKeys"), t.MismatchLabelKeys, t.LabelSelector, false)
	for i, key := range t.MatchLabelKeys {
		if slices.Contains(t.MismatchLabelKeys, key) {
			c.invalid(at.Child("matchLabelKeys").Index(i), key, "is in mismatchLabelKeys too")
		}
	}
}

func checkNodeSelector(c *checker, at *field.Path, s *corev1.NodeSelector) {
	selects := func(term corev1.NodeSelectorTerm) bool { return len(term.MatchExpressions)+len(term.MatchFields) > 0 }
	at = at.Child("nodeSelectorTerms")
	if len(s.NodeSelectorTerms) > 0 && !slices.ContainsFunc(s.NodeSelectorTerms, selects) {
		c.required(at, "a term without expressions selects no node, so that no pod could run anywhere")
	}
	for i := range s.NodeSelectorTerms {
		for j, r := range s.NodeSelectorTerms[i].MatchExpressions {
			for k, value := range r.Values {
				c.invalidEach(at.Index(i).Child("matchExpressions").Index(j).Child("values").Index(k), value, validation.IsValidLabelValue(value))
			}
		}
	}
}

func checkHostAlias(c *checker, at *field.Path, a *corev1.HostAlias) {
	if a.IP != "" { // the table checks it
		c.ip(at.Child("ip"), a.IP)
	}
}

func (c *checker) ip(at *field.Path, ip string) {
	c.errs = append(c.errs, validation.IsValidIPForLegacyField(at, ip, true, nil)...)
}

// Annotations that the API server reads.

func (c *checker) readAnnotations(at *field.Path, annotations map[string]string) {
	var podSeccomp, seccomp, appArmor string // values of the corresponding fields
	if s := c.spec.PodSecurityContext; s != nil {
		podSeccomp = asAnnotation(s.SeccompProfile)
		if p := s.AppArmorProfile; p != nil {
			appArmor = asAnnotation(&corev1.SeccompProfile{Type: corev1.SeccompProfileType(p.Type), LocalhostProfile: p.LocalhostProfile})
		}
	}
	if s := c.spec.ContainerSecurityContext; s != nil {
		seccomp = asAnnotation(s.SeccompProfile)
		if p := s.AppArmorProfile; p != nil {
			appArmor = asAnnotation(&corev1.SeccompProfile{Type: corev1.SeccompProfileType(p.Type), LocalhostProfile: p.LocalhostProfile})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		at, value := at.Key(key), annotations[key]
		bad := func(detail string) { c.invalid(at, field.OmitValueType{}, "%s", detail) }
		switch {
		case key == "controller.kubernetes.io/pod-deletion-cost":
			if number, err := strconv.ParseInt(value, 10, 32); err != nil || strconv.FormatInt(number, 10) != value {
				bad("must be a whole number of 32 bits")
			}
		case key == "scheduler.alpha.kubernetes.io/tolerations":
			var tolerations []corev1.Toleration
			if value != "" && json.Unmarshal([]byte(value), &tolerations) != nil {
				bad("must be a list of tolerations in JSON")
			}
			plan := planOf(typeOf[corev1.Toleration](), nil)
			for i := range tolerations {
				c.fields(plan, reflect.ValueOf(&tolerations[i]).Elem(), at.Index(i))
			}
		case key == corev1.SeccompPodAnnotationKey || strings.HasPrefix(key, corev1.SeccompContainerAnnotationKeyPrefix):
			local, isLocal := strings.CutPrefix(value, corev1.SeccompLocalhostProfileNamePrefix)
			if isLocal && len(descending.check(local)) > 0 || !isLocal && !slices.Contains([]string{"runtime/default", "docker/default", "unconfined"}, value) {
				bad("must be a seccomp profile")
			}
			says := seccomp
			if key == corev1.SeccompPodAnnotationKey {
				says = podSeccomp
			}
			if says != "" && says != strings.Replace(value, "docker/", "runtime/", 1) {
				bad("contradicts the seccompProfile")
			}
		case strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix):
			if !slices.Contains([]string{"", "runtime/default", "unconfined"}, value) && !strings.HasPrefix(value, "localhost/") {
				bad("must be an AppArmor profile")
			} else if appArmor != "" && appArmor != value {
				bad("contradicts the appArmorProfile")
			}
		}
	}
}

// asAnnotation returns a profile in annotation form, or "".
func asAnnotation(p *corev1.SeccompProfile) string {
	if p == nil {
		return ""
	}
	switch p.Type {
	case corev1.SeccompProfileTypeRuntimeDefault:
		return "runtime/default"
	case corev1.SeccompProfileTypeLocalhost:
		return "localhost/" + deref(p.LocalhostProfile)
	default:
		return "unconfined"
	}
}
