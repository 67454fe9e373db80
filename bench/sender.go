package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// sending is one request of the bare sender's.
type sending struct {
	at   time.Duration // from the start
	size int           // of its body
}

// idSize is about what a token id takes in a body.
const idSize = 6

// readSchedule reads a trace in Mooncake's format, in order of time, at so many
// times its speed.
func readSchedule(path string, speed float64) ([]sending, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the schedule: %w", err)
	}
	defer file.Close() // it was read
	var list []sending
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct {
			Timestamp   float64 `json:"timestamp"` // ms
			InputLength int     `json:"input_length"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("read the schedule: %s, line %d: %w", path, len(list)+1, err)
		}
		list = append(list, sending{at: time.Duration(r.Timestamp / speed * 1e6), size: r.InputLength * idSize})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the schedule: %s: %w", path, err)
	}
	return list, nil
}

// runSend is the child process of the bare sender: what any Go program would
// do that has its bodies ready. A goroutine sleeps until each request's time,
// and starts one that posts it by net/http and reads the answer unseen.
func runSend(args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("bench send", flag.ContinueOnError)
	f.SetOutput(stderr)
	url := f.String("url", "", "address of the server")
	speed := f.Float64("speed", 1, "how many times as fast as recorded")
	if f.Parse(args) != nil || f.NArg() != 1 {
		return 2
	}
	list, err := readSchedule(f.Arg(0), *speed)
	if err != nil {
		fmt.Fprintf(stderr, "bench send: error: %v\n", err)
		return 1
	}
	if failed := send(*url, list); failed > 0 {
		fmt.Fprintf(stderr, "bench send: error: %d of %d requests failed\n", failed, len(list))
		return 1
	}
	fmt.Fprintf(stdout, "%d requests\n", len(list))
	return 0
}

// send makes the requests and counts those that failed.
func send(url string, list []sending) int64 {
	most := 0
	for _, s := range list {
		most = max(most, s.size)
	}
	body := bytes.Repeat([]byte("12345,"), most/idSize+1) // a part of it is each request's
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000, IdleConnTimeout: 4 * time.Second}}
	var failed atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for _, s := range list {
		time.Sleep(s.at - time.Since(start))
		all.Go(func() {
			if err := post(client, url, body[:s.size]); err != nil {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	return failed.Load()
}

// post makes one request.
func post(client *http.Client, url string, body []byte) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("send a request: %w", err)
	}
	defer resp.Body.Close() // it is read to its end
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	return nil
}
