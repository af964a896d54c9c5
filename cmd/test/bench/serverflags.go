// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"net"
	"os"
	"strconv"
)

// serverFlags is what a server inside this binary is told by the run.
type serverFlags struct {
	port        int
	certDir     string
	podDefaults string
}

func parseServerFlags(name string, args []string) (serverFlags, error) {
	var o serverFlags
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.IntVar(&o.port, "port", 0, "TCP port on 127.0.0.1")
	flags.StringVar(&o.certDir, "cert-dir", "", "folder of "+certFile+" and "+keyFile)
	flags.StringVar(&o.podDefaults, "poddefaults", "", "JSON file with a PodDefaultList")
	err := flags.Parse(args)
	return o, err
}

func (o serverFlags) address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port))
}

// endWithParent ends this process when the run that started it is gone, however
// that came about: the run holds the other end of standard input.
func endWithParent() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
}
