// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"errors"
	"os"
	"time"
)

var errLinuxOnly = errors.New("the CPU time of another process is read on Linux only; run the benchmark there")

func cpuTime(int) (time.Duration, error) { return 0, errLinuxOnly }

func peakRSS(int) (int64, error) { return 0, errLinuxOnly }

func currentRSS(int) (int64, error) { return 0, errLinuxOnly }

func anonymousRSS(int) (int64, error) { return 0, errLinuxOnly }

func fileRSS(int) (int64, error) { return 0, errLinuxOnly }

func endedRSS(*os.ProcessState) int64 { return 0 }
