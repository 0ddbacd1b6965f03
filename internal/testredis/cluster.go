package testredis

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

const slots = 16384

// ClusterNodes are three primaries that share the slots.
type ClusterNodes struct{ Nodes []*Server }

// Addrs are the nodes' host:port.
func (c *ClusterNodes) Addrs() []string {
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.addr)
	}
	return addrs
}

// Cluster starts three nodes, gives each a third of the slots, and waits until
// every node says that the Cluster is whole.
func Cluster(t testing.TB, args ...string) *ClusterNodes {
	t.Helper()
	c := &ClusterNodes{}
	for range 3 {
		c.Nodes = append(c.Nodes, TCP(t, append([]string{
			"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--save", "",
		}, args...)...))
	}
	host, port, _ := net.SplitHostPort(c.Nodes[0].addr)
	ctx := context.Background()
	for i, n := range c.Nodes {
		rdb := n.Client()
		defer rdb.Close()
		share := []any{"CLUSTER", "ADDSLOTS"}
		for slot := i * slots / 3; slot < (i+1)*slots/3; slot++ {
			share = append(share, slot)
		}
		for _, cmd := range [][]any{share, {"CLUSTER", "SET-CONFIG-EPOCH", i + 1}, {"CLUSTER", "MEET", host, port}} {
			if err := rdb.Do(ctx, cmd...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, n := range c.Nodes {
		rdb := n.Client()
		defer rdb.Close()
		until(t, 20*time.Second, "the Cluster is whole", func() bool {
			info, err := rdb.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	return c
}
