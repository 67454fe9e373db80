package replay

import (
	"context"
	"net"
	"sync"
	"time"
)

// names resolves each host once a run, the first time that it is asked for,
// which is before the origin; with refresh again where an answer is older than
// that when it is asked for. Nobody waits for a second answer: the first holds
// until it is there, and on where it is an error.
type names struct {
	refresh time.Duration // 0 for never
	// ask is the resolver, nil Go's own.
	ask func(ctx context.Context, host string) ([]string, error)

	mu    sync.Mutex
	known map[string]*name
}

type name struct {
	known chan struct{} // closed when the others are there
	addrs []string
	err   error
	at    time.Time // when it was there
	again *name     // that is to take its place, nil for none; behind names.mu
}

// old says whether the name was known longer ago than d.
func (n *name) old(d time.Duration) bool {
	select {
	case <-n.known:
		return time.Since(n.at) > d
	default:
		return false
	}
}

func (n *names) lookup(ctx context.Context, host string) ([]string, error) {
	if net.ParseIP(host) != nil {
		return []string{host}, nil
	}
	n.mu.Lock()
	if n.known == nil {
		n.known = map[string]*name{}
	}
	entry := n.known[host]
	if entry == nil {
		entry = &name{known: make(chan struct{})}
		n.known[host] = entry
		// The first request's end must not spoil it for all others.
		go entry.resolve(context.WithoutCancel(ctx), host, n.ask)
	}
	if n.refresh > 0 && entry.again == nil && entry.old(n.refresh) {
		entry.again = &name{known: make(chan struct{})}
		go n.renew(context.WithoutCancel(ctx), host, entry)
	}
	n.mu.Unlock()
	select {
	case <-entry.known:
		return entry.addrs, entry.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// renew asks for a name again.
func (n *names) renew(ctx context.Context, host string, entry *name) {
	entry.again.resolve(ctx, host, n.ask)
	n.mu.Lock()
	defer n.mu.Unlock()
	next := entry.again
	if next.err != nil && entry.err == nil {
		next = &name{known: entry.known, addrs: entry.addrs, at: next.at}
	}
	n.known[host] = next
}

func (n *name) resolve(ctx context.Context, host string, ask func(context.Context, string) ([]string, error)) {
	defer close(n.known)
	if ask == nil {
		ask = net.DefaultResolver.LookupHost
	}
	n.addrs, n.err = ask(ctx, host)
	n.at = time.Now()
}
