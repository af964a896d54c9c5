package webhook

// +kubebuilder:webhook:nonsense=1
