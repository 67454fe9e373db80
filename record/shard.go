package record

import "github.com/cespare/xxhash/v2"

// ShardOf is the shard, from 0, of n that the request belongs to: XXH64 of its
// session, or of "row:" and its Key where it stands alone, modulo n. All turns
// of a session fall into one shard, on every machine. For n < 2 it is 0.
func ShardOf(r *Request, n int) int {
	if n < 2 {
		return 0
	}
	name := r.Session
	if name == "" {
		name = "row:" + r.Key()
	}
	return int(xxhash.Sum64String(name) % uint64(n))
}
