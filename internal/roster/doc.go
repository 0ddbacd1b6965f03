// Package roster says which processes run: each tells Redis every five seconds
// who it is, and one that has said nothing for twenty is gone.
//
//	fw:{processes}:live    ZSET  process by its last word, ms of Redis's clock; at most 1,000
//	fw:{processes}:about   HASH  process → who it is (JSON, schema version 1)
//
// Both are kept by beat.lua, which drops who is gone. Nothing depends on them
// but what people and programs are shown.
package roster
