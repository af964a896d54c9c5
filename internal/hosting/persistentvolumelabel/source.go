// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

// Source is the kind of a volume's disk, by the field of the volume's spec.
type Source string

// The sources, in lookup order.
const (
	AWSElasticBlockStore Source = "awsElasticBlockStore"
	GCEPersistentDisk    Source = "gcePersistentDisk"
	AzureDisk            Source = "azureDisk"
	Cinder               Source = "cinder"
	VsphereVolume        Source = "vsphereVolume"
)

var sources = []Source{AWSElasticBlockStore, GCEPersistentDisk, AzureDisk, Cinder, VsphereVolume}

// SourceOf returns the source of a cloud provider by its name in --cloud-provider and
// cloudprovider.Interface's ProviderName. It reports false for other names.
func SourceOf(provider string) (Source, bool) {
	switch provider {
	case "aws":
		return AWSElasticBlockStore, true
	case "gce":
		return GCEPersistentDisk, true
	case "azure":
		return AzureDisk, true
	case "openstack":
		return Cinder, true
	case "vsphere":
		return VsphereVolume, true
	}
	return "", false
}

// placeholder is the id of a disk that a provisioner will create later, and whose
// volume it labels itself. vSphere has none.
const placeholder = "placeholder-for-provisioning"

// idFields are the fields that identify a disk. The first is the id, which may be a
// placeholder and appears in messages.
func (s Source) idFields() []string {
	switch s {
	case GCEPersistentDisk:
		return []string{"pdName"}
	case AzureDisk:
		return []string{"diskName", "diskURI"}
	case VsphereVolume:
		return []string{"volumePath"}
	default: // AWSElasticBlockStore, Cinder
		return []string{"volumeID"}
	}
}

// title names a volume in messages.
func (s Source) title() string {
	switch s {
	case AWSElasticBlockStore:
		return "AWS EBS volume"
	case GCEPersistentDisk:
		return "GCE PD volume"
	case AzureDisk:
		return "AzureDisk volume"
	case Cinder:
		return "Cinder volume"
	default:
		return "vSphere Volume"
	}
}
