// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// enclosureVariable tells a process that it is inside, and its folder for files.
const enclosureVariable = "SALLYPORT_LAB_ENCLOSURE"

// Enclosed is the folder for files of a process that [RunEnclosed] has started; "" in others.
func Enclosed() string { return os.Getenv(enclosureVariable) }

// RunEnclosed runs this very binary again, in network, process and mount namespaces of its
// own: its addresses are nobody else's, and when it ends, the kernel ends every process that
// it has started. It ends on its own account when ctx does. The error is an [exec.ExitError]
// if it ends with another status than 0.
//
// It needs root, or user namespaces.
func RunEnclosed(ctx context.Context, folder string, args []string, stdout, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), enclosureVariable+"="+folder)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // Ctrl-C is for the process outside to pass on
	}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	// The death signal is sent when the thread ends that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("making a network namespace: %w; run as root, in a container with --privileged, "+
				"or where users may make user namespaces", err)
		}
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
	})
	defer stop()
	if err := cmd.Wait(); err != nil {
		return errors.Join(context.Cause(ctx), fmt.Errorf("the run inside the namespace: %w", err))
	}
	return nil
}

// SetUpEnclosure mounts /proc anew, so that processes find themselves there by the numbers
// that they have inside, and brings up the loopback interface. The networks of the addresses,
// each of 16 bits, are local to it: on this interface the kernel answers for the whole network
// of an address, as for 127.0.0.0/8.
func SetUpEnclosure(addresses ...string) error {
	// Mounts inside must not be visible outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc of the process namespace: %w; run as root, in a container with --privileged", err)
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("bringing up the loopback interface: %w", err)
	}
	for i, address := range addresses {
		for _, set := range []struct {
			what  uint
			value string
		}{{unix.SIOCSIFADDR, address}, {unix.SIOCSIFNETMASK, "255.255.0.0"}} {
			if request, err = unix.NewIfreq(fmt.Sprintf("lo:%d", i+1)); err != nil {
				return err
			}
			if err := request.SetInet4Addr(net.ParseIP(set.value).To4()); err != nil {
				return err
			}
			if err := unix.IoctlIfreq(socket, set.what, request); err != nil {
				return fmt.Errorf("setting %s of %s: %w", set.value, address, err)
			}
		}
	}
	return nil
}
