package allocation

import (
	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"
)

// Module provides *Pools from a redis.UniversalClient and []Config.
var Module = fx.Module("allocation", fx.Provide(
	func(rdb redis.UniversalClient, pools []Config) (*Pools, error) { return New(rdb, pools) },
))
