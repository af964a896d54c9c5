// SPDX-License-Identifier: Apache-2.0

package contexts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
)

// kubeconfig has contexts of these names, whose servers nobody asks.
func kubeconfig(t *testing.T, names ...string) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts:\n")
	for _, name := range names {
		fmt.Fprintf(&text, "- {name: %s, context: {cluster: c}}\n", name)
	}
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// command has the flags of all that are run over several clusters, and does what do says for a context.
func command(do func(ctx context.Context, cmd *cobra.Command, cluster string, args []string) error) *cobra.Command {
	return Command(func() *cobra.Command {
		flags := clusterflags.Flags{}
		var output string
		var files []string
		var watch, cluster bool
		cmd := &cobra.Command{Use: "drift", SilenceUsage: true, RunE: func(cmd *cobra.Command, args []string) error {
			return do(cmd.Context(), cmd, flags.Context, args)
		}}
		flags.AddNamespacedFlags(cmd)
		cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "")
		cmd.Flags().BoolVar(&watch, "watch", false, "")
		cmd.Flags().BoolVar(&cluster, "cluster", false, "")
		cli.AddOutputFlag(cmd, &output, append([]string{}, "text", "json", "yaml", "github"))
		return cmd
	})
}

// execute returns the exit status, what was printed, and the error.
func execute(cmd *cobra.Command, args ...string) (status int, out, errOut string, failed error) {
	var o, e bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader("kind: Pod"))
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	status = cli.Execute(context.Background(), cmd, func(err error) { failed = err })
	return status, o.String(), e.String(), failed
}

func TestEachClusterGetsTheSameFlags(t *testing.T) {
	config := kubeconfig(t, "a", "b")
	say := func(_ context.Context, cmd *cobra.Command, cluster string, args []string) error {
		in, err := io.ReadAll(cmd.InOrStdin())
		namespace, _ := cmd.Flags().GetString("namespace")
		files, _ := cmd.Flags().GetStringArray("filename")
		all, _ := cmd.Flags().GetBool("cluster")
		_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s %s %q %v %v %s\n", cluster, namespace, files, all, args, in)
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "reading")
		return err
	}
	status, out, errOut, err := execute(command(say), "pod/x", "--kubeconfig", config, "--contexts", "b,a,b", "-n", "team", "-f", "one,two", "-f", "-")
	want := `==> b <==
b team ["one,two" "-"] true [pod/x] kind: Pod

==> a <==
a team ["one,two" "-"] true [pod/x] kind: Pod
`
	if status != 0 || err != nil || out != want {
		t.Errorf("status %d, %v\n%s, want\n%s", status, err, out, want)
	}
	if errOut != "b: reading\na: reading\n" {
		t.Errorf("notes are %q", errOut)
	}
	if _, out, _, _ := execute(command(say), "--kubeconfig", config, "--all-contexts"); !strings.HasPrefix(out, "==> a <==") || !strings.Contains(out, "==> b <==") {
		t.Errorf("all contexts:\n%s", out)
	}
	if _, out, _, _ := execute(command(say), "--kubeconfig", config, "--context", "a"); !strings.HasPrefix(out, "a ") {
		t.Errorf("one context:\n%s", out)
	}
}

func TestAClusterThatIsSlowOrDownHoldsUpNoOther(t *testing.T) {
	config := kubeconfig(t, "down", "fine", "other", "slow", "stuck")
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	do := func(ctx context.Context, cmd *cobra.Command, cluster string, _ []string) error {
		switch cluster {
		case "down":
			return errors.New("connection refused")
		case "slow":
			<-ctx.Done()
			return ctx.Err()
		case "stuck": // looks at no context
			<-hold
		case "other":
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), `{"drifted": 9007199254740993}`)
			return cli.ExitFound
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), `{"drifted": 0}`)
		return err
	}
	got, out, _, err := execute(command(do), "--kubeconfig", config, "--all-contexts", "--context-timeout", "200ms", "-o", "json")
	if got != 1 || err == nil || err.Error() != "3 of 5 clusters could not be read: down, slow, stuck" {
		t.Errorf("status %d, %v", got, err)
	}
	if !strings.Contains(out, "9007199254740993") {
		t.Errorf("a large number is another one now:\n%s", out)
	}
	var all Results
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said := map[string]string{}
	for _, r := range all.Contexts {
		said[r.Context] = fmt.Sprintf("%d %s %v", r.Status, r.Error, r.Result != nil)
	}
	slow := "1 no answer within 200ms: set --context-timeout false"
	for name, want := range map[string]string{"down": "1 connection refused false", "fine": "0  true", "other": "2  true", "slow": slow, "stuck": slow} {
		if said[name] != want {
			t.Errorf("%s: %s, want %s", name, said[name], want)
		}
	}
	_, out, _, _ = execute(command(do), "--kubeconfig", config, "--contexts", "down,fine")
	if want := "==> down <==\nnot read: connection refused\n\n==> fine <==\n{\"drifted\": 0}\n"; out != want {
		t.Errorf("%s, want %s", out, want)
	}
	if status, _, _, err := execute(command(do), "--kubeconfig", config, "--contexts", "other,fine"); status != int(cli.ExitFound) || err != nil {
		t.Errorf("what was found has status %d, %v", status, err)
	}
	if got := statusOf(0, 2, 4, 3); !errors.Is(got, cli.ExitDenied) {
		t.Errorf("denied, found and partly together are %v", got)
	}
	_, out, _, _ = execute(command(do), "--kubeconfig", config, "--contexts", "fine", "-o", "yaml")
	if !strings.Contains(out, "drifted: 0") {
		t.Errorf("yaml is\n%s", out)
	}
}

func TestAnErrorOfAClusterDoesNotReachTheTerminalAsItIs(t *testing.T) {
	_, out, _, _ := execute(command(func(context.Context, *cobra.Command, string, []string) error { return errors.New("\x1b[2Jgone") }),
		"--kubeconfig", kubeconfig(t, "a"), "--contexts", "a")
	if strings.Contains(out, "\x1b") || !strings.Contains(out, "gone") {
		t.Errorf("%q", out)
	}
}

func TestAFewClustersAreReadAtOnce(t *testing.T) {
	names := strings.Fields("a b c d e f g h i j")
	var now, most atomic.Int32
	_, _, _, err := execute(command(func(context.Context, *cobra.Command, string, []string) error {
		n := now.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		time.Sleep(20 * time.Millisecond) // so that others come
		now.Add(-1)
		return nil
	}), "--kubeconfig", kubeconfig(t, names...), "--all-contexts")
	if got := most.Load(); err != nil || got > atOnce || got < 2 {
		t.Errorf("%d clusters were read at once, %v", got, err)
	}
}

func TestFlagsForSeveralClusters(t *testing.T) {
	config := kubeconfig(t, "a", "b")
	for args, want := range map[string]string{
		"--contexts a,x":                            `no context "x": choose a or b`,
		"--contexts a --all-contexts":               "not both",
		"--contexts a --context b":                  "--context is for one cluster",
		"--contexts a --watch":                      "--watch is for one cluster",
		"--contexts a --context-timeout 0s":         "must be positive",
		"--context a --context-timeout 3s":          "requires --contexts",
		"--contexts a --output github":              "--output github is for one cluster",
		"--all-contexts --kubeconfig /nowhere/else": "load kubeconfig",
	} {
		ran := false
		status, _, _, err := execute(command(func(context.Context, *cobra.Command, string, []string) error { ran = true; return nil }),
			append([]string{"--kubeconfig", config}, strings.Fields(args)...)...)
		if status != 1 || err == nil || !strings.Contains(err.Error(), want) || ran {
			t.Errorf("%s: status %d, %v, want %s", args, status, err, want)
		}
	}
}

// statusOf is that of clusters with these.
func statusOf(each ...int) error {
	var results []*Result
	for _, status := range each {
		results = append(results, &Result{Status: status})
	}
	return status(results)
}
