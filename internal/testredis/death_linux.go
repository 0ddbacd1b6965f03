package testredis

import "syscall"

// dieWithParent ends a server whose test process is gone.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
