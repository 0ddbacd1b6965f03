package quota

import (
	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"
)

// Module provides a *Limiter and *Leases from a redis.UniversalClient and a
// []Config, with a []Option where there is one. It starts nothing.
var Module = fx.Module("quota", fx.Provide(provide, provideLeases))

type needs struct {
	fx.In

	Redis   redis.UniversalClient
	Quotas  []Config
	Options []Option `optional:"true"`
}

func provide(n needs) (*Limiter, error) { return New(n.Redis, n.Quotas, n.Options...) }

func provideLeases(n needs) *Leases { return NewLeases(n.Redis, n.Options...) }
