// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport/certificate"
)

// rotationPoll is how often a rotation that is waited for is looked at.
const rotationPoll = time.Second

func newCertificatesRotateCommand() *cobra.Command {
	o := newCertificatesOptions()
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "rotate --service NAMESPACE/NAME | --authority-secret NAMESPACE/NAME",
		Short: "Replace the authority by a new one, without an interruption",
		Long: "Rotate asks the server that leads to replace the authority. It publishes a new one beside the one\n" +
			"that signs, lets the new one sign once everybody trusts it, and then drops the old one. That takes\n" +
			"a little more than twice certificate.caPropagation of the server.",
		Example: "  sallyport certificates rotate --service sallyport-system/sallyport --wait",
		Args:    noArguments("everything is said by flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := o.validate()
			if timeout <= 0 {
				err = errors.Join(err, fmt.Errorf("--timeout %s must be positive", timeout))
			}
			if err != nil {
				return err
			}
			client, err := o.client()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			return o.rotate(ctx, client, cmd.OutOrStdout(), wait, timeout)
		},
	}
	o.addFlags(cmd)
	addFlagGroup(cmd, "Waiting", func() {
		cmd.Flags().BoolVar(&wait, "wait", false, "wait until the old authority is dropped, and print how far it is")
		cmd.Flags().DurationVar(&timeout, "timeout", 15*time.Minute, "with --wait: `time` after which to give up waiting; the rotation itself goes on")
	})
	return cmd
}

func (o *certificatesOptions) rotate(ctx context.Context, client kubernetes.Interface, out io.Writer, wait bool, timeout time.Duration) error {
	namespace, name := o.secret()
	secrets := client.CoreV1().Secrets(namespace)
	before, err := certificate.RequestRotation(ctx, secrets, name, time.Now())
	if err != nil {
		return aboutSecret(namespace, name, err)
	}
	if _, err := fmt.Fprintf(out, "rotation of the authority in Secret %s/%s requested\n", namespace, name); err != nil || !wait {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(rotationPoll)
	defer ticker.Stop()
	told := certificate.PhaseSteady
	var problem error
	for {
		var now *certificate.Status
		if secret, err := secrets.Get(ctx, name, metav1.GetOptions{}); err != nil {
			problem = err // an API server may be away for a moment
		} else if now, problem = certificate.ReadStatus(secret); problem == nil {
			replaced := now.Phase == certificate.PhaseSteady && !now.Signer.Equal(before.Signer)
			if now.Phase != told {
				told = now.Phase
				if _, err := fmt.Fprintln(out, told); err != nil {
					return err
				}
			}
			if replaced {
				_, err := fmt.Fprintf(out, "done: the new authority is SHA-256 %s\n", fingerprint(now.Signer))
				return err
			}
		}
		select {
		case <-ctx.Done():
			err := fmt.Errorf("the rotation is not done (%w), it goes on by itself: see 'sallyport certificates status'", ctx.Err())
			if told == certificate.PhaseSteady {
				err = fmt.Errorf("no server has begun the rotation (%w): see by 'sallyport certificates status' who leads", ctx.Err())
			}
			return aboutSecret(namespace, name, errors.Join(err, problem))
		case <-ticker.C:
		}
	}
}
