package replay

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"retrace/record"
)

// classify names the class of an error that came in place of a response.
func (a *attempt) classify(err error) string {
	var dns *net.DNSError
	switch {
	case isClientLimit(err):
		return record.ClassClientLimit
	case errors.As(err, &dns):
		if strings.Contains(dns.Err, "too many open files") {
			return record.ClassClientLimit
		}
		return record.ClassDNS
	case a.tlsFailed.Load():
		return record.ClassTLS
	case !a.answered.Load():
		return record.ClassConnect
	case isBroken(err) || a.conn != nil && a.conn.ended.Load():
		return record.ClassTruncated // within the head
	}
	return record.ClassBadResponse // bytes came, but no HTTP
}

// isClientLimit tells the errors that are this machine's, not the server's.
func isClientLimit(err error) bool {
	for _, no := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOMEM, syscall.ENOBUFS,
	} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// isBroken tells the errors of a connection that was cut.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isReset(err)
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNABORTED)
}

// closedIdle tells the race of a request and a server that closes an idle
// connection; see the package documentation.
func (a *attempt) closedIdle(err error, now time.Duration) bool {
	if !a.reused || a.conn == nil || a.answered.Load() {
		return false
	}
	// net/http has no exported error for an end that it saw between requests.
	if a.conn.sent.Load() == 0 || strings.Contains(err.Error(), "server closed idle connection") {
		return true
	}
	return a.idle >= idleSuspect && isBroken(err) && now-a.conn.sentAt() <= quickEnd
}

// cut settles a request that its context ended: by its timeout, or by us.
func cut(ctx context.Context, res *record.Result) bool {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errTimeout):
		res.State, res.Class = record.Failed, record.ClassTimeout
		return true
	case cause != nil && !errors.Is(cause, errDrained):
		res.State = record.Cancelled
		return true
	}
	return false
}
