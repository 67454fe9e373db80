package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// peerRequests is how many short requests a round of measurePeers sends.
	peerRequests = 60_000
	// peerConnections is how many of them are under way at once.
	peerConnections = 64
	// peerSpan is how long the peers send.
	peerSpan = 5 * time.Second
)

// shortBody is a prompt of 16 tokens that asks for 4.
const shortBody = `{"prompt":[11923,20371,3021,9121,10211,28811,11923,20371,3021,9121,10211,28811,30123,1234,5678,9123],` +
	`"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":4}`

// startInstant starts this program's own server with more flags. Its stop writes
// the stamps.
func startInstant(ctx context.Context, o *options, flags ...string) (s *server, stamps string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", fmt.Errorf("find this program: %w", err)
	}
	stamps = filepath.Join(o.scratch, "stamps")
	cmd := exec.CommandContext(ctx, self, append([]string{"serve", "--stamps", stamps}, flags...)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, "", fmt.Errorf("start the server: %w", err)
	}
	s = &server{cmd: cmd}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.stop()
		return nil, "", fmt.Errorf("start the server: %w", err)
	}
	s.url = strings.TrimSpace(strings.TrimPrefix(line, "ready on "))
	return s, stamps, nil
}

// measurePeers makes as many short requests as each client can, in turns
// against the same server.
func measurePeers(ctx context.Context, o *options) error {
	source := filepath.Join(o.scratch, "burst.jsonl")
	if err := writeRows(source, peerRequests, func(i int) row { return row{input: 16, output: 4, blocks: []uint64{uint64(i)}} }); err != nil {
		return err
	}
	body := filepath.Join(o.scratch, "body.json")
	if err := os.WriteFile(body, []byte(shortBody), 0o600); err != nil {
		return fmt.Errorf("write the body: %w", err)
	}
	s, _, err := startInstant(ctx, o)
	if err != nil {
		return err
	}
	defer s.stop()
	type client struct {
		name string
		path string // empty where it is not given
		run  func(ctx context.Context, o *options, url string) (rate, cpu float64, err error)
	}
	clients := []client{
		{"trace-replay", "trace-replay", func(ctx context.Context, o *options, url string) (float64, float64, error) {
			return peerOurs(ctx, o, source, url)
		}},
		{"vegeta", o.vegeta, func(ctx context.Context, o *options, url string) (float64, float64, error) {
			return peerVegeta(ctx, o, body, url)
		}},
		{"wrk", o.wrk, func(ctx context.Context, o *options, url string) (float64, float64, error) {
			return peerWrk(ctx, o, url)
		}},
	}
	for _, t := range tools(o) {
		clients = append(clients, client{t.name, t.path, func(ctx context.Context, o *options, url string) (float64, float64, error) {
			return t.burst(ctx, o, source, url)
		}})
	}
	rates, cpus := make([][]float64, len(clients)), make([][]float64, len(clients))
	for range o.rounds {
		for i, c := range clients {
			if c.path == "" {
				continue
			}
			rate, cpu, err := c.run(ctx, o, s.url)
			if err != nil {
				return err
			}
			rates[i], cpus[i] = append(rates[i], rate), append(cpus[i], cpu*1e6)
		}
	}
	fmt.Fprintf(o.stdout, "16 tokens in, 4 out, streamed, %d connections, a server that answers at once; medians of %d rounds (the worst in brackets).\n\n", peerConnections, o.rounds)
	fmt.Fprintln(o.stdout, "| client | requests/s | client CPU a request |")
	fmt.Fprintln(o.stdout, "| --- | --- | --- |")
	for i, c := range clients {
		if c.path == "" {
			fmt.Fprintf(o.stdout, "| %s | not given (`--%s PATH`) | |\n", c.name, c.name)
			continue
		}
		fmt.Fprintf(o.stdout, "| %s | %.0f (%.0f) | %.1f µs (%.1f) |\n", c.name, median(rates[i]), slices.Min(rates[i]), median(cpus[i]), slices.Max(cpus[i]))
	}
	return nil
}

// peerOurs replays the burst.
func peerOurs(ctx context.Context, o *options, source, url string) (rate, cpu float64, err error) {
	u, err := child(ctx, o, "trace-replay", source, "--from", "mooncake", "--block-size", "16", "--url", url, "--max-lag", "1h",
		"--max-concurrency", strconv.Itoa(peerConnections), "--max-in-flight", strconv.Itoa(2*peerRequests), "--json")
	if err != nil {
		return 0, 0, err
	}
	var s struct {
		Requests struct {
			Completed float64 `json:"completed"`
		} `json:"requests"`
		Duration float64 `json:"duration_s"`
	}
	if err := json.Unmarshal(u.stdout, &s); err != nil || s.Requests.Completed != peerRequests {
		return 0, 0, fmt.Errorf("replay a burst: %v of %d requests completed: %w", s.Requests.Completed, peerRequests, err)
	}
	return peerRequests / s.Duration, u.cpu.Seconds() / peerRequests, nil
}

// peer runs another client to its end.
func peer(ctx context.Context, path, stdin string, args ...string) (out []byte, cpu time.Duration, err error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if out, err = cmd.Output(); err != nil {
		return nil, 0, fmt.Errorf("run %s: %w\n%s", path, err, errs.Bytes())
	}
	return out, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// peerVegeta attacks without a rate, by as many workers as there are connections.
func peerVegeta(ctx context.Context, o *options, body, url string) (rate, cpu float64, err error) {
	n := strconv.Itoa(peerConnections)
	results := filepath.Join(o.scratch, "vegeta.bin")
	_, used, err := peer(ctx, o.vegeta, "POST "+url+"/v1/completions\nContent-Type: application/json\n@"+body+"\n", "attack",
		"-rate", "0", "-workers", n, "-max-workers", n, "-connections", n, "-duration", peerSpan.String(), "-output", results)
	if err != nil {
		return 0, 0, err
	}
	out, _, err := peer(ctx, o.vegeta, "", "report", "-type", "json", results)
	if err != nil {
		return 0, 0, err
	}
	var s struct {
		Requests float64 `json:"requests"`
		Rate     float64 `json:"throughput"`
	}
	if err := json.Unmarshal(out, &s); err != nil || s.Requests == 0 {
		return 0, 0, fmt.Errorf("read vegeta's report: %w", errors.Join(err, errors.New("no requests")))
	}
	return s.Rate, used.Seconds() / s.Requests, nil
}

// peerWrk runs wrk with one thread.
func peerWrk(ctx context.Context, o *options, url string) (rate, cpu float64, err error) {
	script := filepath.Join(o.scratch, "wrk.lua")
	lua := fmt.Sprintf("wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\nwrk.body = [[%s]]\n", shortBody)
	// A long bracket keeps the text as it is, but "]]" would end it.
	lua = strings.Replace(strings.Replace(lua, "[[{", "[=[{", 1), "}]]", "}]=]", 1)
	if err := os.WriteFile(script, []byte(lua), 0o600); err != nil {
		return 0, 0, fmt.Errorf("write wrk's script: %w", err)
	}
	out, used, err := peer(ctx, o.wrk, "", "-t1", "-c"+strconv.Itoa(peerConnections), "-d"+strconv.Itoa(int(peerSpan.Seconds()))+"s", "-s", script, url+"/v1/completions")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(out)) {
		if text, found := strings.CutPrefix(line, "Requests/sec:"); found {
			if rate, err = strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil {
				return 0, 0, fmt.Errorf("read wrk's report: %w", err)
			}
			return rate, used.Seconds() / (rate * peerSpan.Seconds()), nil
		}
	}
	return 0, 0, fmt.Errorf("read wrk's report: no rate in %q", out)
}

// measureSchedule replays the conversation trace in 100 s, in turns with a bare
// sender of bodies that are ready, and shows when the requests reached a server
// that only reads.
func measureSchedule(ctx context.Context, o *options) error {
	source, what, err := conversation(o)
	if err != nil {
		return err
	}
	list, err := readSchedule(source, 1)
	if err != nil {
		return err
	}
	span := 10 * o.span
	speed := list[len(list)-1].at.Seconds() / span.Seconds()
	fmt.Fprintf(o.stdout, "%s in %v; moments of arrival at a server that only reads, from the earliest.\n\n", what, span)
	fmt.Fprintln(o.stdout, "| client | requests | first after, s | late p50, ms | p99, ms | max, ms | peak RSS |")
	fmt.Fprintln(o.stdout, "| --- | --- | --- | --- | --- | --- | --- |")
	factor := strconv.FormatFloat(speed, 'f', 4, 64)
	at, err := readSchedule(source, speed)
	if err != nil {
		return err
	}
	if err := scheduleRow(ctx, o, "trace-replay", at, func(url string) *exec.Cmd {
		return exec.CommandContext(ctx, filepath.Join(o.bin, "trace-replay"), source, "--from", "mooncake", "--url", url, "--speed", factor, "--max-lag", "1h")
	}); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if err := scheduleRow(ctx, o, "a bare Go sender of ready bodies", at, func(url string) *exec.Cmd {
		return exec.CommandContext(ctx, self, "send", "--url", url, "--speed", factor, source)
	}); err != nil {
		return err
	}
	quick := filepath.Join(o.scratch, "quicker.jsonl")
	if err := quicker(source, quick, speed); err != nil {
		return err
	}
	for _, t := range tools(o) {
		if err := toolSchedule(ctx, o, t, quick, at); err != nil {
			return err
		}
	}
	return nil
}

// scheduleRow runs one client against a server of its own.
func scheduleRow(ctx context.Context, o *options, name string, list []sending, command func(url string) *exec.Cmd) error {
	s, path, err := startInstant(ctx, o)
	if err != nil {
		return err
	}
	cmd := command(s.url)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	start := time.Now()
	err = cmd.Run()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = s.cmd.Wait()                          // after the stamps are written
	if err != nil {
		return fmt.Errorf("run %s: %w\n%s", name, err, errs.Bytes())
	}
	stamps, err := readStamps(path)
	if err != nil {
		return err
	}
	if len(stamps) != len(list) {
		return fmt.Errorf("run %s: %d of %d requests arrived", name, len(stamps), len(list))
	}
	late := lateness(stamps, list)
	fmt.Fprintf(o.stdout, "| %s | %d | %.2f | %.2f | %.2f | %.2f | %.0f MiB |\n", name, len(stamps), float64(stamps[0]-start.UnixNano())/1e9,
		late[len(late)/2], late[len(late)*99/100], late[len(late)-1], mib(peak(cmd.ProcessState)))
	return nil
}

// lateness is how many milliseconds after its time each request came, from the
// earliest, in order. The k-th to come is taken for the k-th of the schedule.
func lateness(stamps []int64, list []sending) []float64 {
	slices.Sort(stamps)
	late := make([]float64, len(stamps))
	for i, at := range stamps {
		late[i] = (float64(at-stamps[0]) - float64(list[i].at)) / 1e6
	}
	slices.Sort(late)
	first := late[0]
	for i := range late {
		late[i] -= first
	}
	return late
}
