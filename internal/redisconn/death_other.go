//go:build unix && !linux

package redisconn

import "syscall"

// needsGuard: no signal comes when a parent is gone, so a shell looks out for it.
const needsGuard = true

func dieWithParent(*syscall.SysProcAttr) {}
