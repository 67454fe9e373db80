package simserver

import (
	"net/http"
	"slices"
	"strconv"

	"retrace/openai"
)

// resolveModel finds which model a request is for: the base model by one of
// its names or none, or an adapter.
func (s *Server) resolveModel(g *generation) *apiError {
	name := g.params.Model
	g.model, g.adapter = s.cfg.Model, ""
	switch {
	case name == "", name == s.cfg.Model, slices.Contains(s.cfg.Aliases, name):
		return nil
	case slices.Contains(s.cfg.Adapters, name):
		g.model, g.adapter = name, name
		if g.api == openai.Transcriptions {
			return badRequest("Currently do not support LoRA for Transcription.")
		}
		return nil
	}
	return notFound("The model `%s` does not exist.", name)
}

// models lists the names of the model and the adapters.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	b := []byte(`{"object":"list","data":[`)
	for _, name := range append([]string{s.cfg.Model}, s.cfg.Aliases...) {
		b = s.appendCard(b, name, s.cfg.Model, "")
	}
	for _, name := range s.cfg.Adapters {
		b = s.appendCard(b, name, name, s.cfg.Model)
	}
	b[len(b)-1] = ']' // in place of the last comma
	writeJSON(w, http.StatusOK, append(b, '}'))
}

// appendCard appends one model and a comma.
func (s *Server) appendCard(b []byte, name, root, parent string) []byte {
	b = openai.AppendQuoted(append(b, `{"id":`...), name)
	b = strconv.AppendInt(append(b, `,"object":"model","created":`...), s.started.Unix(), 10)
	b = openai.AppendQuoted(append(b, `,"owned_by":"retrace","root":`...), root)
	b = append(b, `,"parent":`...)
	if parent == "" {
		b = strconv.AppendInt(append(b, `null,"max_model_len":`...), int64(s.cfg.MaxModelLen), 10)
	} else { // vLLM tells it of the base model only
		b = append(openai.AppendQuoted(b, parent), `,"max_model_len":null`...)
	}
	return append(b, "},"...)
}
