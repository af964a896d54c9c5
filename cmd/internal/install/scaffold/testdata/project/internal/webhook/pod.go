package webhook

//+kubebuilder:webhook:path=/validate--v1-pod,mutating=false,failurePolicy=fail,groups="",resources=pods,verbs=delete,versions=v1,name=vpod.books.example.com,admissionReviewVersions=v1

/*
	A block is no marker:

+kubebuilder:webhook:nonsense=1
*/
func check() {}

// +kubebuilder:rbac:groups=books.example.com,resources=books,verbs=get
