// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

// Source is where a volume's disk is, by the field of the volume's spec.
type Source string

// The sources, in the order in which they are looked for.
const (
	AWSElasticBlockStore Source = "awsElasticBlockStore"
	GCEPersistentDisk    Source = "gcePersistentDisk"
	AzureDisk            Source = "azureDisk"
	Cinder               Source = "cinder"
	VsphereVolume        Source = "vsphereVolume"
)

var sources = []Source{AWSElasticBlockStore, GCEPersistentDisk, AzureDisk, Cinder, VsphereVolume}

// SourceOf is the source of the cloud provider of that name, as --cloud-provider and
// cloudprovider.Interface's ProviderName have it; false for all others.
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

// placeholder is the id of a disk that does not exist yet: a provisioner makes it later,
// and labels the volume itself. vSphere has no such thing.
const placeholder = "placeholder-for-provisioning"

// idFields are the fields of a source that say which disk it is. The first one is the id
// that a placeholder has and messages tell.
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

// title is what messages call a volume.
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
