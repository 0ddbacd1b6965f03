package redisconn

import "fmt"

// Keys of the guard; a Cluster has a set in each sixteenth of its slots, so
// that each of its primaries holds one:
//
//	fw:{primary}:mark:PROCESS   STRING  what this process wrote last, ms; seven days
//	fw:{primary}:alarm          STRING  who found writes missing; there while nobody writes
//	fw:{primary}:accepted       STRING  when a person last accepted this server, µs
type shardKeys struct{ prefix string }

func (k shardKeys) mark(process string) string { return k.prefix + "mark:" + process }
func (k shardKeys) alarm() string              { return k.prefix + "alarm" }
func (k shardKeys) accepted() string           { return k.prefix + "accepted" }

const (
	slotCount  = 16384
	slotShares = 16
)

// guardKeys are the sets of a server, or of a Cluster.
func guardKeys(k kind) []shardKeys {
	if k != kindCluster {
		return []shardKeys{{"fw:{primary}:"}}
	}
	out := make([]shardKeys, slotShares)
	for found, n := 0, 0; found < slotShares; n++ {
		tag := fmt.Sprintf("primary-%d", n)
		if share := int(slotOf(tag)) * slotShares / slotCount; out[share].prefix == "" {
			out[share].prefix = "fw:{" + tag + "}:"
			found++
		}
	}
	return out
}

// slotOf is a hash tag's slot: CRC-16/XMODEM, as the Cluster's specification has it.
func slotOf(tag string) uint16 {
	var crc uint16
	for _, b := range []byte(tag) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % slotCount
}
