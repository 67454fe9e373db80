package replay

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retrace/openai"
	"retrace/record"
)

// streamCase is one behaviour of a server, named by the case that it stands
// for, and what a client has to make of it. Times are from the send on, -1 for
// none; the expected values are worked out by hand from the script.
type streamCase struct {
	name   string
	answer http.HandlerFunc
	class  string // "" for completed
	note   string // a part of the result's sentence; "-" for none
	// first is the first output, content the first content, last the last
	// output, end the stream's end.
	first, content, last, end time.Duration
	gaps                      string // wait in ms and tokens, such as "100:4 0:-1"
	tokens                    int64  // as the server counts, -1 where it does not
	counted                   int64  // outputs counted here
}

const none = time.Duration(-1)

func at(d time.Duration, text string) step { return step{d, text} }

// gzipped is a stream that is compressed, unasked.
func gzipped(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/event-stream")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
	}
}

func running(text string, completion int) string {
	return fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":%q}}],"usage":{"prompt_tokens":5,"completion_tokens":%d}}`+"\n\n", text, completion)
}

func choiceEvent(index int, text, finish string) string {
	return fmt.Sprintf(`data: {"choices":[{"index":%d,"delta":{"content":%q},"finish_reason":%s}]}`+"\n\n", index, text, finish)
}

const failure = `data: {"error":{"message":"engine died","code":500}}` + "\n\n"

var theStreamCases = []streamCase{
	{"S01 CRLF, no space", scripted(at(10*ms, "data:{\"choices\":[{\"delta\":{\"content\":\"A\"}}]}\r\n\r\ndata:[DONE]\r\n\r\n")),
		"", "-", 10 * ms, 10 * ms, 10 * ms, 10 * ms, "", -1, 1},
	{"S03 a letter cut in two", scripted(at(10*ms, "data: {\"choices\":[{\"delta\":{\"content\":\"\xc3"), at(30*ms, "\xa9\"}}]}\n\n"+done)),
		"", "-", 30 * ms, 30 * ms, 30 * ms, 30 * ms, "", -1, 1},
	{"S04 two events in one read", scripted(at(10*ms, word+word+done)), "", "-", 10 * ms, 10 * ms, 10 * ms, 10 * ms, "0:-1", -1, 2},
	{"S06 pings and comments", scripted(at(5*ms, ": ping\n\n"), at(6*ms, "data: \n\n"), at(7*ms, "event: message\nid: 7\nretry: 10\ndata: {\"choices\":\ndata: [{\"delta\":{\"content\":\"A\"}}]}\n\n"), at(9*ms, done)),
		"", "-", 7 * ms, 7 * ms, 7 * ms, 9 * ms, "", -1, 1},
	{"S07 usage last", scripted(at(10*ms, word), at(20*ms, event("", "stop")), at(50*ms, usage(9, 3)+done)), "", "-", 10 * ms, 10 * ms, 10 * ms, 50 * ms, "", 3, 1},
	{"S08 no usage", scripted(at(10*ms, word), at(20*ms, word+done)), "", "-", 10 * ms, 10 * ms, 20 * ms, 20 * ms, "10:-1", -1, 2},
	{"S08 usage on every chunk", scripted(at(10*ms, running("a", 1)), at(20*ms, running("b", 3)), at(30*ms, running("c", 4)+done)),
		"", "-", 10 * ms, 10 * ms, 30 * ms, 30 * ms, "10:2 10:1", 4, 3},
	{"S08 null usage", scripted(at(10*ms, `data: {"choices":[{"delta":{"content":"a"}}],"usage":null}`+"\n\n"+done)), "", "-", 10 * ms, 10 * ms, 10 * ms, 10 * ms, "", -1, 1},
	{"S09 error after content", scripted(at(10*ms, word), at(20*ms, word), at(30*ms, word), at(40*ms, failure+done)),
		record.ClassStreamError, "engine died", 10 * ms, 10 * ms, 30 * ms, 40 * ms, "10:-1 10:-1", -1, 3},
	{"S09 error first", scripted(at(10*ms, failure+done)), record.ClassStreamError, "engine died", none, none, none, 10 * ms, "", -1, 0},
	{"S09 a plain string", scripted(at(10*ms, word+`data: {"error":"boom"}`+"\n\n")), record.ClassStreamError, "boom", 10 * ms, 10 * ms, 10 * ms, 10 * ms, "", -1, 1},
	{"S09 event: error", scripted(at(10*ms, "event: error\ndata: boom\n\n")), record.ClassStreamError, "boom", none, none, none, 10 * ms, "", -1, 0},
	{"S09 a null error", scripted(at(10*ms, `data: {"error":null,"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`+"\n\n"+done)), "", "-", 10 * ms, 10 * ms, 10 * ms, 10 * ms, "", -1, 1},
	{"S11 A no finish_reason", scripted(at(10*ms, word), at(20*ms, word), at(30*ms, word), at(40*ms, word)),
		record.ClassTruncated, "after 4 outputs", 10 * ms, 10 * ms, 40 * ms, 40 * ms, "10:-1 10:-1 10:-1", -1, 4},
	{"S11 B no DONE", scripted(at(10*ms, word), at(20*ms, event("", "stop"))), "", "no [DONE]", 10 * ms, 10 * ms, 10 * ms, 20 * ms, "", -1, 1},
	{"S12 role first", scripted(at(10*ms, event(`"role":"assistant","content":""`, "")), at(900*ms, word), at(950*ms, word+done)),
		"", "-", 900 * ms, 900 * ms, 950 * ms, 950 * ms, "50:-1", -1, 2},
	{"S13 reasoning_content first", scripted(at(50*ms, event(`"reasoning_content":"hm"`, "")), at(5*time.Second, word+done)),
		"", "-", 50 * ms, 5 * time.Second, 5 * time.Second, 5 * time.Second, "4950:-1", -1, 2},
	{"S13 reasoning, no content", scripted(at(50*ms, event(`"reasoning":"hm"`, "")), at(60*ms, event("", "stop")+done)), "", "-", 50 * ms, none, 50 * ms, 60 * ms, "", -1, 1},
	{"S14 tool calls only", scripted(at(10*ms, event(`"content":null,"tool_calls":[{"index":0,"function":{"name":"f"}}]`, "")),
		at(20*ms, event(`"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]`, "tool_calls")), at(25*ms, usage(9, 6)+done)),
		"", "-", 10 * ms, none, 20 * ms, 25 * ms, "10:-1", 6, 2},
	{"S15 several tokens a chunk", scripted(at(100*ms, running("a", 1)), at(200*ms, running("b c d e", 5)), at(300*ms, running("f g h i", 9)+done)),
		"", "-", 100 * ms, 100 * ms, 300 * ms, 300 * ms, "100:4 100:4", 9, 3},
	{"S17 a chunk of no tokens", scripted(at(10*ms, running("a", 1)), at(20*ms, running("b", 1)), at(30*ms, running("", 2)), at(40*ms, running("c", 3)+done)),
		"", "-", 10 * ms, 10 * ms, 40 * ms, 40 * ms, "10:0 20:2", 3, 3},
	{"S18 two choices in turns", scripted(at(10*ms, choiceEvent(0, "a", "null")), at(15*ms, choiceEvent(1, "x", "null")), at(30*ms, choiceEvent(0, "b", `"stop"`)), at(45*ms, choiceEvent(1, "y", `"stop"`)+done)),
		"", "-", 10 * ms, 10 * ms, 45 * ms, 45 * ms, "20:-1 30:-1", -1, 4},
	{"S19 compressed unasked", gzipped(word + event("", "stop") + done), "", "-", 0, 0, 0, 0, "", -1, 1},
	{"S20 plain JSON", typed("application/json", `{"choices":[{"message":{"content":"a b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`),
		"", "plain JSON", none, none, 0, 0, "", 2, -1},
	{"S20 HTML", typed("text/html", html), record.ClassBadResponse, "Log in", none, none, none, 0, "", -1, -1},
}

func TestStreamCases(t *testing.T) {
	for _, c := range theStreamCases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reqs := every(0, 1)
				reqs[0].API, reqs[0].Body = "chat", []byte(`{"messages":[]}`)
				_, results := inBubble(t, answers(c.answer), reqs, func(cfg *Config) { cfg.API, cfg.Prompt = openai.Chat, Literal })
				c.check(t, &results[0])
			})
		})
	}
}

func (c *streamCase) check(t *testing.T, r *record.Result) {
	t.Helper()
	state := record.Completed
	if c.class != "" {
		state = record.Failed
	}
	noted := strings.Contains(r.Error, c.note)
	if c.note == "-" {
		noted = r.Error == ""
	}
	if r.State != state || r.Class != c.class || !noted {
		t.Errorf("%v %s %q; want %v %s %q", r.State, r.Class, r.Error, state, c.class, c.note)
	}
	for _, m := range []struct {
		name      string
		got, want time.Duration
	}{{"first output", r.FirstOutput, c.first}, {"first content", r.FirstContent, c.content}, {"last output", r.LastOutput, c.last}, {"end", r.End, c.end}} {
		got := none
		if m.got != record.NoTime {
			got = m.got - r.Sent
		}
		if got != m.want {
			t.Errorf("%s at %v, want %v", m.name, got, m.want)
		}
	}
	var gaps []string
	for _, g := range r.Gaps {
		gaps = append(gaps, fmt.Sprintf("%d:%d", g.Wait/ms, g.Tokens))
	}
	if got := strings.Join(gaps, " "); got != c.gaps || r.CompletionTokens != c.tokens || r.CountedOutput != c.counted {
		t.Errorf("gaps %q, %d tokens, %d counted; want %q, %d, %d", got, r.CompletionTokens, r.CountedOutput, c.gaps, c.tokens, c.counted)
	}
}

// S18: the first output of each choice, where there are several.
func TestChoiceFirsts(t *testing.T) {
	for _, c := range []struct {
		steps []step
		want  string
	}{
		{[]step{at(10*ms, choiceEvent(0, "a", "null")), at(15*ms, choiceEvent(1, "x", "null")), at(30*ms, choiceEvent(0, "b", "null"))}, "10 15"},
		{[]step{at(10*ms, choiceEvent(2, "a", "null")), at(15*ms, choiceEvent(0, "x", "null"))}, "15 - 10"},
		{[]step{at(10*ms, choiceEvent(0, "a", "null")+choiceEvent(1, "b", "null"))}, "10 10"},
		{[]step{at(10*ms, choiceEvent(0, "a", "null")), at(15*ms, choiceEvent(0, "x", "null"))}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, results := inBubble(t, answers(scripted(append(c.steps, at(50*ms, done))...)), every(0, 1), func(cfg *Config) { cfg.API = openai.Chat })
			i := slices.IndexFunc(results, func(r record.Result) bool { return r.Mark == record.Planned })
			var got []string
			for _, d := range results[i].ChoiceFirsts {
				text := "-"
				if d != record.NoTime {
					text = fmt.Sprint(int64((d - results[i].Sent) / ms))
				}
				got = append(got, text)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
