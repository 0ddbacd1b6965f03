package scheduler

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed clock.lua
	clockLua string
	//go:embed load.lua
	loadLua string
	//go:embed claim.lua
	claimLua string
	//go:embed advance.lua
	advanceLua string
	//go:embed beat.lua
	beatLua string
	//go:embed pause.lua
	pauseLua string
	//go:embed request.lua
	requestLua string
	//go:embed take_request.lua
	takeRequestLua string
	//go:embed move_request.lua
	moveRequestLua string

	loadScript        = redis.NewScript(clockLua + loadLua)
	claimScript       = redis.NewScript(clockLua + claimLua)
	advanceScript     = redis.NewScript(clockLua + advanceLua)
	beatScript        = redis.NewScript(clockLua + beatLua)
	pauseScript       = redis.NewScript(clockLua + pauseLua)
	requestScript     = redis.NewScript(clockLua + requestLua)
	takeRequestScript = redis.NewScript(clockLua + takeRequestLua)
	moveRequestScript = redis.NewScript(clockLua + moveRequestLua)
)
