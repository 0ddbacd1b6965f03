package quota

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

//go:embed frame.lua
var frameLua string

//go:embed tree.lua
var treeLua string

//go:embed hot.lua
var hotLua string

//go:embed log.lua
var logLua string

//go:embed meta.lua
var metaLua string

//go:embed age.lua
var ageLua string

//go:embed line.lua
var lineLua string

//go:embed series.lua
var seriesLua string

//go:embed label.lua
var labelLua string

//go:embed seen.lua
var seenLua string

//go:embed grant.lua
var grantLua string

//go:embed charge.lua
var chargeLua string

//go:embed refund.lua
var refundLua string

//go:embed leave.lua
var leaveLua string

//go:embed block.lua
var blockLua string

//go:embed state.lua
var stateLua string

//go:embed history.lua
var historyLua string

//go:embed running.lua
var runningLua string

//go:embed lease.lua
var leaseLua string

//go:embed shut.lua
var shutLua string

//go:embed running_state.lua
var runningStateLua string

// Each script is its own file after the parts that it stands on.
var (
	baseParts     = frameLua + logLua + seriesLua + treeLua + metaLua
	lineParts     = baseParts + seenLua + ageLua + lineLua
	hotScript     = redis.NewScript(frameLua + hotLua)
	chargeScript  = redis.NewScript(frameLua + logLua + seriesLua + labelLua + grantLua + treeLua + metaLua + ageLua + lineLua + seenLua + chargeLua)
	refundScript  = redis.NewScript(lineParts + labelLua + refundLua)
	leaveScript   = redis.NewScript(lineParts + leaveLua)
	stateScript   = redis.NewScript(lineParts + stateLua)
	blockScript   = redis.NewScript(baseParts + blockLua)
	historyScript = redis.NewScript(frameLua + logLua + seriesLua + seenLua + historyLua)

	leaseScript        = redis.NewScript(runningLua + leaseLua)
	shutScript         = redis.NewScript(runningLua + shutLua)
	runningStateScript = redis.NewScript(runningLua + runningStateLua)
)
