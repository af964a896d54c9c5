// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

const settingsCode = `package p

type Settings struct {
	// mode is the mode of registration: by the server (API) or not (None). Unless mode is None,
	// it needs rights. Default API, because it is safest.
	Mode string ` + "`json:\"mode\" flag:\"registration\" value:\"mode\" group:\"API server\" enum:\"API,None\"`" + `
	// caFile is the file with the PEM-encoded CA bundle. It is reloaded when it changes. Only
	// used if mode is API.
	CAFile string ` + "`json:\"caFile\" flag:\"ca-file\" value:\"file\"`" + `
	// service is the Service that is called. API is called with the rights of p.New. None is not.
	Service string ` + "`json:\"service\" flag:\"service\" value:\"namespace/name\" enum:\"API,None\"`" + `
	// maxBytes is the maximum of caFile, and maxBytes of others. Default 0: a half; serve defaults to 3.
	MaxBytes int ` + "`json:\"maxBytes\" flag:\"max-bytes\"`" + `
	// elect makes one replica lead. If false, all do.
	Elect bool ` + "`json:\"elect\" flag:\"elect\"`" + `
	// shared is true if there are others.
	Shared bool ` + "`json:\"shared\" flag:\"shared\"`" + `
}
`

func TestHelpIsTheCommentInTheWordsOfFlags(t *testing.T) {
	settings := parse(t, settingsCode)["Settings"]
	want := map[string]string{
		"mode":     "`mode` of registration: by the server (API) or not (None); unless --registration is None, it needs rights",
		"caFile":   "with --registration API: `file` with the PEM-encoded CA bundle; it is reloaded when it changes",
		"service":  "the Service that is called, `namespace/name`; None is not",
		"maxBytes": "maximum of --ca-file, and maxBytes of others; 0 means a half",
		"elect":    "make one replica lead; if false, all do",
		"shared":   "there are others",
	}
	for _, f := range settings.fields {
		if got := help(settings, f); got != want[f.name] {
			t.Errorf("%s: %q\nwant %q", f.name, got, want[f.name])
		}
	}
}
