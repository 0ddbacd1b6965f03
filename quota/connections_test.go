package quota_test

import (
	"context"
	"net"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"feedwarden/internal/faultnet"
	"feedwarden/internal/testredis"
)

// A route is a way to Redis.
type route struct {
	open func(dial dialer) redis.UniversalClient
}

// A dialer makes connections; nil makes them as usual.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// Retries are as quick as a test wants them, and time-outs as short.
const (
	retryFrom = time.Millisecond
	retryTo   = 20 * time.Millisecond
)

func alone(t *testing.T) route {
	addr := testredis.TCP(t, "--save", "").Addr()
	return route{func(dial dialer) redis.UniversalClient { return client(addr, dial) }}
}

func onMiniredis(t *testing.T) route {
	addr := miniredis.RunT(t).Addr()
	return route{func(dial dialer) redis.UniversalClient { return client(addr, dial) }}
}

func client(addr string, dial dialer) redis.UniversalClient {
	return redis.NewClient(&redis.Options{Addr: addr, Dialer: dial, MinRetryBackoff: retryFrom, MaxRetryBackoff: retryTo, DialerRetries: 1})
}

func behindSentinels(t *testing.T) route {
	set := testredis.Sentinel(t, testredis.SentinelOptions{})
	return route{func(dial dialer) redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: set.Name, SentinelAddrs: set.Addrs(), Dialer: dial, MinRetryBackoff: retryFrom, MaxRetryBackoff: retryTo, DialerRetries: 1,
		})
	}}
}

func inACluster(t *testing.T) route {
	nodes := testredis.Cluster(t)
	return route{func(dial dialer) redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: nodes.Addrs(), Dialer: dial, MinRetryBackoff: retryFrom, MaxRetryBackoff: retryTo, DialerRetries: 1,
		})
	}}
}

// routes are those that tests take by their names; the others take the server that all share.
var routes sync.Map

func routeOf(t testing.TB) (route, bool) {
	for name := t.Name(); name != ""; {
		if r, ok := routes.Load(name); ok {
			return r.(route), true
		}
		cut := strings.LastIndexByte(name, '/')
		name = name[:max(cut, 0)]
	}
	return route{}, false
}

// connection is a client of the servers that a test runs on.
func connection(t testing.TB) redis.UniversalClient {
	t.Helper()
	r, ok := routeOf(t)
	if !ok {
		return testredis.Client(t)
	}
	rdb := r.open(nil)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// breakable is a client of those servers over a net that the test can break.
func breakable(t *testing.T) (redis.UniversalClient, *faultnet.Net) {
	t.Helper()
	r, ok := routeOf(t)
	if !ok {
		r = alone(t)
	}
	n := faultnet.New(t)
	rdb := r.open(n.Dial)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb, n
}

// everywhere are the tests that hold whatever Redis is behind.
var everywhere = []func(*testing.T){
	TestWaitUntilAsManyEntriesAsNeededHaveLeft,
	TestRefusalsThatCostNothing,
	TestUnknownNamesAndBadCostsWriteNothing,
	TestRefundOnce,
	TestRetryAfterIsInMillisecondsAndNeverZero,
	TestTheWholeLimitAfterOneUnit,
	TestAHundredChargesInOneMicrosecond,
	TestAllWindowsOrNone,
	TestEveryWriteSetsTheTTLAgain,
	TestALineThatLastsLongerThanTheLogKeepsItsKeys,
	TestLimitsChangeAndTheLogStays,
	TestAClockThatStepsBack,
	TestSumsStayBelowWhereDigitsAreLost,
	TestIDsAreRememberedForAnHourOrTheLongestWindow,
	TestTheSameIDIsChargedOnce,
	TestARefundedIDStaysFreeWhenTheClockStepsBack,
	TestIDsAreRememberedWhenTheClockStepsBack,
	TestFiftyWaitersArePromisedFiftyInstants,
	TestFirstComeFirstServed,
	TestUnitsFreedEarlyGoToTheFirst,
	TestAPlaceIsHeldForTheGraceAndNoLonger,
	TestAWaiterThatIsLateButInTimeIsGranted,
	TestNoLineTakesNoPlace,
	TestLeaving,
	TestAskingForSomethingElseLosesThePlace,
	TestTheReserveIsForInteractiveChargesAlone,
	TestBlock,
	TestStateShowsTheFirstOfEachLine,
	TestACalendarDayBesidesATrailingOne,
	TestDaysOf23And25Hours,
	TestClocksThatAreDaysApart,
	TestScriptsRefuseCostsThatAreNoNumbers,
	TestThePrefixIsTheCallers,
	TestALostReplyIsChargedOnce,
	TestAnUnknownOutcomeRefundedTwiceRestoresOnce,
	TestManyAtOnce,
	TestAFlushedScriptCacheIsRefilled,
	TestAnErrorIsNeverAGrant,
	TestACostThatNeverFitsIsAnErrorAtOnce,
	TestAnEntryCountsUntilItsInstantAndNoLonger,
	TestARefusalCostsNoUnits,
	TestACostOfTenMillionIsOneEntry,
	TestOneASecondForTwentyWorkers,
	TestStampsAFewMicrosecondsApart,
	TestCancelledJobsLeaveTheLineAtOnce,
	TestLightChargesCannotStarveHeavyOnes,
	TestANewcomerIsGrantedOnlyWhileNobodyOfItsClassWaits,
	TestNotBackAfterTheGraceIsDropped,
	TestLoweredLimitsShowNothingNegativeAndGiveNewPromises,
}

// The same tests, on every kind of Redis that one can be connected to.
func TestOnEveryConnection(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) route{
		"single": alone, "Sentinel": behindSentinels, "Cluster": inACluster, "miniredis": onMiniredis,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routes.Store(t.Name(), open(t))
			for _, test := range everywhere {
				full := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
				t.Run(full[strings.LastIndexByte(full, '.')+1:], test)
			}
		})
	}
}
