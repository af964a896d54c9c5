// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// PodDefaults are checked for what the API server refuses in pods (k8s.io/api/core/v1;
// rules of Kubernetes 1.37). This file holds the rules for single fields, and for
// groups of fields of which one may be set. The schemas of the definitions are
// generated from this table: see TestGeneratedSchemas. Rules that involve several
// fields are in checktypes.go.

// A fieldRule applies to one field of a type, or to each element of a list.
type fieldRule struct {
	required bool     // must be set; an optional scalar may be absent, but not empty
	choices  []string // the valid values; empty is valid unless required
	min, max *int64
	format   *format
}

var (
	mustBeSet = fieldRule{required: true}
	userID    = between(0, 1<<31-1)
	fileMode  = between(0, 0o777)
	natural   = fieldRule{min: new(int64(0))}
	positive  = fieldRule{min: new(int64(1))}
)

func between(low, high int64) fieldRule         { return fieldRule{min: &low, max: &high} }
func oneOf(choices ...string) fieldRule         { return fieldRule{choices: choices} }
func mustBeOneOf(of ...string) fieldRule        { return fieldRule{choices: of, required: true} }
func formatted(f *format) fieldRule             { return fieldRule{format: f} }
func mustBeFormatted(f *format) fieldRule       { return fieldRule{format: f, required: true} }
func typeOf[T any]() reflect.Type               { return reflect.TypeFor[T]() }
func named(rule fieldRule) map[string]fieldRule { return map[string]fieldRule{"name": rule} }

var signals = append(strings.Fields(`SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT SIGKILL
	SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGSEGV SIGSTKFLT SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2
	SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIGRTMIN SIGRTMIN+1 SIGRTMIN+2 SIGRTMIN+3 SIGRTMIN+4 SIGRTMIN+5 SIGRTMIN+6 SIGRTMIN+7 SIGRTMIN+8
	SIGRTMIN+9 SIGRTMIN+10 SIGRTMIN+11 SIGRTMIN+12 SIGRTMIN+13 SIGRTMIN+14 SIGRTMIN+15 SIGRTMAX-14 SIGRTMAX-13 SIGRTMAX-12 SIGRTMAX-11
	SIGRTMAX-10 SIGRTMAX-9 SIGRTMAX-8 SIGRTMAX-7 SIGRTMAX-6 SIGRTMAX-5 SIGRTMAX-4 SIGRTMAX-3 SIGRTMAX-2 SIGRTMAX-1`), "SIGRTMAX")

var (
	pullPolicies    = oneOf("Always", "IfNotPresent", "Never")
	messagePolicies = oneOf("File", "FallbackToLogsOnError")
	selectorOps     = mustBeOneOf("In", "NotIn", "Exists", "DoesNotExist")
	profiles        = mustBeOneOf("RuntimeDefault", "Unconfined", "Localhost")
)

// fieldRules are the rules of each type, by JSON field name.
var fieldRules = map[reflect.Type]map[string]fieldRule{
	typeOf[kubeflowv1alpha1.PodDefaultSpec](): {
		"serviceAccountName": formatted(dnsSubdomain), "priorityClassName": formatted(dnsSubdomain),
		"runtimeClassName": mustBeFormatted(dnsSubdomain), "terminationGracePeriodSeconds": natural,
		"dnsPolicy": oneOf("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"), "activeDeadlineSeconds": between(1, 1<<31-1),
		"terminationMessagePolicy": messagePolicies, "secretsMountPath": formatted(absolutePath),
		// Of the values of maps, for the schema: see checker.maps.
		"labels": formatted(labelValue), "nodeSelector": formatted(labelValue),
	},
	typeOf[metav1.LabelSelector]():            {"matchLabels": formatted(labelValue)},
	typeOf[metav1.LabelSelectorRequirement](): {"operator": selectorOps},

	// Variables.
	typeOf[corev1.EnvVar]():                {"name": mustBeFormatted(variableName)},
	typeOf[corev1.EnvFromSource]():         {"prefix": formatted(variableName)},
	typeOf[corev1.ConfigMapEnvSource]():    named(mustBeFormatted(dnsPrefix)),
	typeOf[corev1.SecretEnvSource]():       named(mustBeFormatted(dnsPrefix)),
	typeOf[corev1.ConfigMapKeySelector]():  {"name": mustBeFormatted(dnsSubdomain), "key": mustBeFormatted(configKey)},
	typeOf[corev1.SecretKeySelector]():     {"name": mustBeFormatted(dnsSubdomain), "key": mustBeFormatted(configKey)},
	typeOf[corev1.FileKeySelector]():       {"volumeName": mustBeFormatted(dnsLabel), "path": mustBeFormatted(ascending), "key": mustBeFormatted(variableName)},
	typeOf[corev1.ObjectFieldSelector]():   {"apiVersion": oneOf("v1"), "fieldPath": mustBeSet},
	typeOf[corev1.ResourceFieldSelector](): {"resource": mustBeSet},

	// Volumes and mounts. The API server accepts any name of a Secret, ConfigMap or claim:
	// see names.
	typeOf[corev1.Volume]():                            named(mustBeFormatted(dnsLabel)),
	typeOf[corev1.HostPathVolumeSource]():              {"path": mustBeFormatted(ascending), "type": oneOf("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")},
	typeOf[corev1.EmptyDirVolumeSource]():              {"mode": between(0, 0o1777)},
	typeOf[corev1.GCEPersistentDiskVolumeSource]():     {"pdName": mustBeSet, "partition": between(0, 255)},
	typeOf[corev1.AWSElasticBlockStoreVolumeSource]():  {"volumeID": mustBeSet, "partition": between(0, 255)},
	typeOf[corev1.GitRepoVolumeSource]():               {"repository": mustBeSet, "directory": formatted(descending)},
	typeOf[corev1.SecretVolumeSource]():                {"secretName": mustBeSet, "defaultMode": fileMode, "defaultUser": userID},
	typeOf[corev1.ConfigMapVolumeSource]():             {"name": mustBeSet, "defaultMode": fileMode, "defaultUser": userID},
	typeOf[corev1.KeyToPath]():                         {"key": mustBeSet, "path": mustBeFormatted(fileInVolume), "mode": fileMode, "user": userID},
	typeOf[corev1.NFSVolumeSource]():                   {"server": mustBeSet, "path": mustBeFormatted(absolutePath)},
	typeOf[corev1.ISCSIVolumeSource]():                 {"targetPortal": mustBeSet, "iqn": mustBeFormatted(iscsiName), "lun": between(0, 255), "initiatorName": mustBeFormatted(iscsiName)},
	typeOf[corev1.GlusterfsVolumeSource]():             {"endpoints": mustBeSet, "path": mustBeSet},
	typeOf[corev1.PersistentVolumeClaimVolumeSource](): {"claimName": mustBeSet},
	typeOf[corev1.RBDVolumeSource]():                   {"monitors": mustBeSet, "image": mustBeSet},
	typeOf[corev1.CinderVolumeSource]():                {"volumeID": mustBeSet},
	typeOf[corev1.CephFSVolumeSource]():                {"monitors": mustBeSet},
	typeOf[corev1.QuobyteVolumeSource]():               {"registry": mustBeSet, "volume": mustBeSet},
	typeOf[corev1.DownwardAPIVolumeSource]():           {"defaultMode": fileMode, "defaultUser": userID},
	typeOf[corev1.DownwardAPIVolumeFile]():             {"path": mustBeFormatted(fileInVolume), "mode": fileMode, "user": userID},
	typeOf[corev1.FlexVolumeSource]():                  {"driver": mustBeSet},
	typeOf[corev1.AzureFileVolumeSource]():             {"secretName": mustBeSet, "shareName": mustBeSet},
	typeOf[corev1.AzureDiskVolumeSource]():             {"diskName": mustBeSet, "diskURI": mustBeSet, "cachingMode": mustBeOneOf("None", "ReadOnly", "ReadWrite"), "kind": mustBeOneOf("Shared", "Dedicated", "Managed")},
	typeOf[corev1.VsphereVirtualDiskVolumeSource]():    {"volumePath": mustBeSet},
	typeOf[corev1.PhotonPersistentDiskVolumeSource]():  {"pdID": mustBeSet},
	typeOf[corev1.PortworxVolumeSource]():              {"volumeID": mustBeSet},
	typeOf[corev1.ScaleIOVolumeSource]():               {"gateway": mustBeSet, "system": mustBeSet, "volumeName": mustBeSet},
	typeOf[corev1.StorageOSVolumeSource]():             {"volumeName": mustBeFormatted(dnsLabel), "volumeNamespace": formatted(dnsLabel)},
	typeOf[corev1.ProjectedVolumeSource]():             {"defaultMode": fileMode, "defaultUser": userID},
	typeOf[corev1.SecretProjection]():                  named(mustBeSet),
	typeOf[corev1.ConfigMapProjection]():               named(mustBeSet),
	typeOf[corev1.ServiceAccountTokenProjection]():     {"path": mustBeFormatted(fileInVolume), "expirationSeconds": between(600, 1<<32), "user": userID},
	typeOf[corev1.ClusterTrustBundleProjection]():      {"path": mustBeFormatted(fileInVolume), "name": mustBeSet, "signerName": mustBeSet, "user": userID},
	typeOf[corev1.PodCertificateProjection](): {
		"signerName": mustBeSet, "keyType": mustBeOneOf("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"),
		"maxExpirationSeconds": between(3600, 91*24*3600), "user": userID,
		"credentialBundlePath": formatted(fileInVolume), "keyPath": formatted(fileInVolume), "certificateChainPath": formatted(fileInVolume),
	},
	typeOf[corev1.CSIVolumeSource]():       {"driver": mustBeFormatted(csiDriver)},
	typeOf[corev1.EphemeralVolumeSource](): {"volumeClaimTemplate": mustBeSet},
	typeOf[corev1.PersistentVolumeClaimSpec](): {
		"accessModes": mustBeOneOf("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"), "storageClassName": formatted(dnsSubdomain),
		"volumeMode": mustBeOneOf("Block", "Filesystem"), "volumeAttributesClassName": formatted(dnsSubdomain),
	},
	typeOf[corev1.TypedLocalObjectReference](): {"name": mustBeSet, "kind": mustBeSet, "apiGroup": formatted(dnsSubdomain)},
	typeOf[corev1.TypedObjectReference]():      {"name": mustBeSet, "kind": mustBeSet, "apiGroup": formatted(dnsSubdomain), "namespace": formatted(dnsLabel)},
	typeOf[corev1.ImageVolumeSource]():         {"reference": mustBeSet, "pullPolicy": pullPolicies},
	typeOf[corev1.VolumeMount](): {
		"name": mustBeSet, "mountPath": mustBeSet, "subPath": formatted(descending), "subPathExpr": formatted(descending),
		"mountPropagation": mustBeOneOf("None", "HostToContainer", "Bidirectional"), "recursiveReadOnly": mustBeOneOf("Disabled", "IfPossible", "Enabled"),
		"bindMountOptions": oneOf("noexec", "nodev", "nosuid"),
	},
	typeOf[corev1.VolumeDevice](): {"name": mustBeSet, "devicePath": mustBeFormatted(ascending)},

	// Containers.
	typeOf[corev1.Container](): {
		"name": mustBeFormatted(dnsLabel), "image": mustBeSet, "imagePullPolicy": pullPolicies,
		"terminationMessagePolicy": messagePolicies, "restartPolicy": mustBeOneOf("Always", "OnFailure", "Never"),
	},
	typeOf[corev1.ContainerRestartRule]():            {"action": mustBeOneOf("Restart", "RestartAllContainers"), "exitCodes": mustBeSet},
	typeOf[corev1.ContainerRestartRuleOnExitCodes](): {"operator": mustBeOneOf("In", "NotIn")},
	typeOf[corev1.ContainerResizePolicy]():           {"resourceName": mustBeOneOf("cpu", "memory"), "restartPolicy": mustBeOneOf("NotRequired", "RestartContainer")},
	typeOf[corev1.ContainerPort](): {
		"name": formatted(portName), "containerPort": between(1, 65535), "hostPort": between(0, 65535), "protocol": oneOf("TCP", "UDP", "SCTP"),
	},
	typeOf[corev1.ResourceClaim](): {"name": mustBeSet, "request": formatted(dnsLabel)},
	typeOf[corev1.Probe](): {
		"initialDelaySeconds": natural, "timeoutSeconds": natural, "periodSeconds": natural, "successThreshold": natural,
		"failureThreshold": natural, "terminationGracePeriodSeconds": positive,
	},
	typeOf[corev1.ExecAction]():    {"command": mustBeSet},
	typeOf[corev1.HTTPGetAction](): {"scheme": oneOf("HTTP", "HTTPS"), "protocol": mustBeOneOf("HTTP1", "HTTP2")},
	typeOf[corev1.HTTPHeader]():    named(mustBeFormatted(headerName)),
	typeOf[corev1.GRPCAction]():    {"port": between(1, 65535), "mode": mustBeOneOf("Plaintext", "TLS")},
	typeOf[corev1.SleepAction]():   {"seconds": natural},
	typeOf[corev1.Lifecycle]():     {"stopSignal": mustBeOneOf(signals...)},

	// Security.
	typeOf[corev1.SecurityContext](): {"runAsUser": userID, "runAsGroup": userID, "procMount": mustBeOneOf("Default", "Unmasked")},
	typeOf[corev1.PodSecurityContext](): {
		"runAsUser": userID, "runAsGroup": userID, "fsGroup": userID, "supplementalGroups": userID,
		"fsGroupChangePolicy": mustBeOneOf("OnRootMismatch", "Always"), "supplementalGroupsPolicy": mustBeOneOf("Merge", "Strict"),
		"seLinuxChangePolicy": mustBeOneOf("Recursive", "MountOption"),
	},
	typeOf[corev1.Sysctl]():                        named(mustBeFormatted(sysctlName)),
	typeOf[corev1.SeccompProfile]():                {"type": profiles, "localhostProfile": formatted(descending)},
	typeOf[corev1.AppArmorProfile]():               {"type": profiles, "localhostProfile": mustBeSet},
	typeOf[corev1.WindowsSecurityContextOptions](): {"gmsaCredentialSpecName": mustBeFormatted(dnsSubdomain), "gmsaCredentialSpec": mustBeSet, "runAsUserName": mustBeSet},

	// Scheduling and the network.
	typeOf[corev1.Toleration](): {
		"key": formatted(labelKey), "operator": oneOf("Equal", "Exists", "Lt", "Gt"), "effect": oneOf("NoSchedule", "PreferNoSchedule", "NoExecute"),
	},
	typeOf[corev1.TopologySpreadConstraint](): {
		"maxSkew": positive, "topologyKey": mustBeSet, "whenUnsatisfiable": mustBeOneOf("DoNotSchedule", "ScheduleAnyway"), "minDomains": positive,
		"nodeAffinityPolicy": mustBeOneOf("Ignore", "Honor"), "nodeTaintsPolicy": mustBeOneOf("Ignore", "Honor"), "matchLabelKeys": formatted(labelKey),
	},
	typeOf[corev1.NodeSelectorRequirement](): {"key": mustBeSet, "operator": mustBeOneOf("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")},
	typeOf[corev1.NodeSelector]():            {"nodeSelectorTerms": mustBeSet},
	typeOf[corev1.PreferredSchedulingTerm](): {"weight": between(1, 100)},
	typeOf[corev1.WeightedPodAffinityTerm](): {"weight": between(1, 100)},
	typeOf[corev1.PodAffinityTerm](): {
		"topologyKey": mustBeFormatted(labelKey), "namespaces": formatted(dnsLabel), "matchLabelKeys": formatted(labelKey), "mismatchLabelKeys": formatted(labelKey),
	},
	typeOf[corev1.PodResourceClaim](): {
		"name": mustBeFormatted(dnsLabel), "resourceClaimName": mustBeFormatted(dnsSubdomain), "resourceClaimTemplateName": mustBeFormatted(dnsSubdomain),
	},
	typeOf[corev1.PodSchedulingGate]():  named(mustBeFormatted(labelKey)),
	typeOf[corev1.PodReadinessGate]():   {"conditionType": mustBeFormatted(labelKey)},
	typeOf[corev1.HostAlias]():          {"ip": mustBeSet, "hostnames": formatted(dnsSubdomain)},
	typeOf[corev1.PodDNSConfigOption](): named(mustBeSet),
}

// A fieldGroup says that at most one, or exactly one, of some fields is set.
type fieldGroup struct {
	fields  []string // none means all fields of the type
	exactly bool
}

var fieldGroups = map[reflect.Type]fieldGroup{
	typeOf[corev1.VolumeSource]():          {},
	typeOf[corev1.VolumeProjection]():      {},
	typeOf[corev1.EnvVarSource]():          {exactly: true},
	typeOf[corev1.LifecycleHandler]():      {exactly: true},
	typeOf[corev1.ProbeHandler]():          {exactly: true},
	typeOf[corev1.EnvFromSource]():         {fields: []string{"configMapRef", "secretRef"}, exactly: true},
	typeOf[corev1.DownwardAPIVolumeFile](): {fields: []string{"fieldRef", "resourceFieldRef"}, exactly: true},
	typeOf[corev1.PodResourceClaim]():      {fields: []string{"resourceClaimName", "resourceClaimTemplateName"}, exactly: true},
}

// A typePlan lists what to check in values of a type.
type typePlan struct {
	fields []fieldPlan
	group  *fieldGroup
	rule   typeRule
	// empty: nothing to check, here or below.
	empty bool
}

type fieldPlan struct {
	index  int
	name   string // empty: an embedded struct, whose fields belong to the type
	rule   *fieldRule
	member bool // of the type's group
	below  *typePlan
}

var specPlan = sync.OnceValue(func() *typePlan { return planOf(typeOf[kubeflowv1alpha1.PodDefaultSpec](), nil) })

// planOf plans the checks of a type. The rules of a type also apply to the fields of
// embedded structs, unless those have their own.
func planOf(t reflect.Type, outer map[string]fieldRule) *typePlan {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	plan := &typePlan{rule: typeRules[t], empty: true}
	if t.Kind() != reflect.Struct {
		return plan
	}
	plan.empty = plan.rule == nil
	if group, ok := fieldGroups[t]; ok {
		plan.group, plan.empty = &group, false
	}
	rules := fieldRules[t]
	if rules == nil {
		rules = outer
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := fieldPlan{index: i, name: name}
		var inherited map[string]fieldRule
		if f.Anonymous && name == "" {
			inherited = rules
		} else if rule, ok := rules[name]; ok {
			p.rule = &rule
		}
		p.member = plan.group != nil && (len(plan.group.fields) == 0 || slices.Contains(plan.group.fields, name))
		p.below = planOf(f.Type, inherited)
		if p.rule != nil || p.member || !p.below.empty {
			plan.fields, plan.empty = append(plan.fields, p), false
		}
	}
	return plan
}

// fields checks a struct and everything below it.
func (c *typeChecker) fields(plan *typePlan, v reflect.Value, at *field.Path) {
	var set []string
	for i := range plan.fields {
		p := &plan.fields[i]
		value := v.Field(p.index)
		if p.name == "" {
			c.fields(p.below, value, at)
			continue
		}
		absent := value.IsZero() && value.Kind() != reflect.Struct || value.Kind() == reflect.Slice && value.Len() == 0
		if p.member && !absent {
			set = append(set, p.name)
		}
		scalar := value.Kind() == reflect.Pointer && value.Type().Elem().Kind() != reflect.Struct
		switch {
		case absent && p.rule != nil && p.rule.required && !scalar:
			c.required(child(at, p.name), "it must be set")
			continue
		case absent && (p.rule == nil || p.rule.min == nil || scalar):
			continue
		}
		here := child(at, p.name)
		if p.rule != nil {
			c.field(p.rule, value, here)
		}
		if !p.below.empty {
			c.below(p.below, value, here)
		}
	}
	if plan.group != nil && (len(set) > 1 || plan.group.exactly && len(set) == 0) {
		c.invalid(at, field.OmitValueType{}, "%s", plan.groupRule())
	}
	if plan.rule != nil {
		plan.rule(c, at, v.Addr().Interface())
	}
}

// groupRule says which fields of the group may be set.
func (p *typePlan) groupRule() string {
	var names []string
	for i := range p.fields {
		if p.fields[i].member {
			names = append(names, p.fields[i].name)
		}
	}
	if p.group.exactly {
		return "exactly one must be set of " + strings.Join(names, ", ")
	}
	if len(names) > 5 {
		return "only one source may be set"
	}
	return "only one may be set of " + strings.Join(names, ", ")
}

func (c *typeChecker) below(plan *typePlan, v reflect.Value, at *field.Path) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.below(plan, v.Elem(), at)
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.below(plan, v.Index(i), index(at, i))
		}
	case reflect.Struct:
		c.fields(plan, v, at)
	}
}

// field checks one value, or the elements of a list.
func (c *typeChecker) field(rule *fieldRule, v reflect.Value, at *field.Path) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.field(rule, v.Elem(), at)
		}
	case reflect.Slice:
		element := rule.ofElements()
		for i := range v.Len() {
			c.field(&element, v.Index(i), index(at, i))
		}
	case reflect.String:
		switch text := v.String(); {
		case text == "" && rule.required:
			c.required(at, "it must be set")
		case text == "":
		case rule.choices != nil && !slices.Contains(rule.choices, text):
			c.errs = append(c.errs, field.NotSupported(at, text, rule.choices))
		case rule.format != nil:
			c.invalidEach(at, text, rule.format.check(text))
		}
	case reflect.Int32, reflect.Int64:
		if number := v.Int(); rule.min != nil && number < *rule.min {
			c.invalid(at, number, "must be at least %d", *rule.min)
		} else if rule.max != nil && number > *rule.max {
			c.invalid(at, number, "must be at most %d", *rule.max)
		}
	}
}

// ofElements returns the rule for the elements of a list. A required list says nothing
// about its elements, and an empty element is not a choice.
func (r fieldRule) ofElements() fieldRule {
	r.required = r.choices != nil || r.format != nil
	return r
}
