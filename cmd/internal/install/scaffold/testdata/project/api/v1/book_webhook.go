package v1

// All arguments of a mutating webhook.
// +kubebuilder:webhook:path=/mutate-v1-book,mutating=true,failurePolicy=ignore,matchPolicy=Exact,sideEffects=NoneOnDryRun,timeoutSeconds=3,groups=core;books.example.com,resources=books;books/status,verbs=create;update,versions=v1;v1beta1,name=mbook.books.example.com,serviceName=books,serviceNamespace=shop,servicePort=8443,webhookVersions=v1,admissionReviewVersions=v1;v1beta1,reinvocationPolicy=IfNeeded,patch=`{"namespaceSelector":{"matchLabels":{"b":"2","a":"1"}},"objectSelector":{"matchExpressions":[{"key":"tier","operator":"In","values":["front","back"]}]},"matchConditions":[{"name":"not-root","expression":"request.userInfo.username != \"root\""}],"rules":[{"apiGroups":["books.example.com"],"apiVersions":["v1"],"resources":["books"],"operations":["CREATE"],"scope":"Cluster"}]}`

// +kubebuilder:webhook:url="https://192.0.2.1:9443/validate-v1-book",mutating=false,failurePolicy=fail,sideEffects=None,groups=books.example.com,resources=books,verbs="*",versions=v1,name=a.vbook.books.example.com,admissionReviewVersions=v1

type Book struct{}
