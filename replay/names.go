package replay

import (
	"context"
	"net"
	"sync"
)

// names resolves each host once a run, the first time that it is asked for,
// which is before the origin.
type names struct {
	// ask is the resolver, nil Go's own.
	ask func(ctx context.Context, host string) ([]string, error)

	mu    sync.Mutex
	known map[string]*name
}

type name struct {
	known chan struct{} // closed when the others are there
	addrs []string
	err   error
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
	n.mu.Unlock()
	select {
	case <-entry.known:
		return entry.addrs, entry.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *name) resolve(ctx context.Context, host string, ask func(context.Context, string) ([]string, error)) {
	defer close(n.known)
	if ask == nil {
		ask = net.DefaultResolver.LookupHost
	}
	n.addrs, n.err = ask(ctx, host)
}
