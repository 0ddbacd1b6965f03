//go:build !linux

package testredis

import "syscall"

// dieWithParent: this system has no such signal.
func dieWithParent() *syscall.SysProcAttr { return nil }
