package redisconn

import "syscall"

// needsGuard: the kernel itself ends a child whose parent is gone.
const needsGuard = false

// dieWithParent asks for SIGTERM, on which a server still writes its last data.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
