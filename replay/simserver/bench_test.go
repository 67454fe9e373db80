package simserver

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// BenchmarkHTTP is whole streamed requests over loopback by a client that does
// next to nothing, client and server on the same cores.
func BenchmarkHTTP(b *testing.B) {
	for _, tokens := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) {
			s, _ := started(b, Config{})
			body := ask(1000, 64, tokens, `,"stream":true`)
			request := fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			const clients = 16
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for i := range clients {
				wg.Go(func() {
					if err := rawClient(s.Addr(), request, (b.N+i)/clients); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

// rawClient sends a request n times over one connection and reads the chunked answers.
func rawClient(addr, request string, n int) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for range n {
		if _, err := conn.Write([]byte(request)); err != nil {
			return err
		}
		for line := ""; line != "0\r\n"; {
			raw, err := answers.ReadSlice('\n')
			if err != nil {
				return err
			}
			line = string(raw)
			if strings.HasPrefix(line, "HTTP/1.1 ") && line != "HTTP/1.1 200 OK\r\n" {
				return fmt.Errorf("answer %q", line)
			}
		}
		if _, err := answers.Discard(2); err != nil {
			return err
		}
	}
	return nil
}
