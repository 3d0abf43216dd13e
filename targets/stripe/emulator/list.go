package emulator

import (
	"slices"
	"strconv"
)

// list is a page of objects ("Pagination").
type list struct {
	Object  string `json:"object"`
	URL     string `json:"url"`
	HasMore bool   `json:"has_more"`
	Data    []any  `json:"data"`
}

// item is what a list is made of.
type item struct {
	id      string
	created int64
	object  any
}

// page cuts one page out of items, which are in the order of creation: the
// newest first, ten or as many as limit says, a hundred at most, from behind
// starting_after or before ending_before ("Pagination").
func (c *call) page(what string, items []item) *answer {
	limit := 10
	if text := c.form.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return invalid("parameter_invalid_integer", "limit", "This value must be between 1 and 100.")
		}
		limit = n
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	for _, bound := range []struct {
		name string
		keep func(created, at int64) bool
	}{
		{"created[gt]", func(c, at int64) bool { return c > at }}, {"created[gte]", func(c, at int64) bool { return c >= at }},
		{"created[lt]", func(c, at int64) bool { return c < at }}, {"created[lte]", func(c, at int64) bool { return c <= at }},
		{"created", func(c, at int64) bool { return c == at }},
	} {
		if at, err := strconv.ParseInt(c.form.Get(bound.name), 10, 64); err == nil {
			items = slices.DeleteFunc(items, func(i item) bool { return !bound.keep(i.created, at) })
		}
	}
	after, before := c.form.Get("starting_after"), c.form.Get("ending_before")
	more := false
	switch {
	case after != "":
		i := slices.IndexFunc(items, func(i item) bool { return i.id == after })
		if i < 0 {
			return missing("starting_after", what, after)
		}
		items = items[i+1:]
	case before != "":
		i := slices.IndexFunc(items, func(i item) bool { return i.id == before })
		if i < 0 {
			return missing("ending_before", what, before)
		}
		items = items[:i]
		more = len(items) > limit
		items = items[max(0, len(items)-limit):]
	}
	if before == "" {
		more = len(items) > limit
		items = items[:min(limit, len(items))]
	}
	l := list{Object: "list", URL: c.request.URL.Path, HasMore: more, Data: []any{}}
	for _, i := range items {
		l.Data = append(l.Data, i.object)
	}
	return ok(l)
}

// about says whether a list is to hold what belongs to a payment.
func (c *call) about(p *payment) bool {
	charge, intent := c.form.Get("charge"), c.form.Get("payment_intent")
	return (charge == "" || charge == p.charge) && (intent == "" || intent == p.intent)
}

// listRefunds lists refunds in every state ("List all refunds"). They can't be
// searched by metadata, status or key.
func (s *Server) listRefunds(c *call) *answer {
	if s.meets(ListFails) || c.form.Get("starting_after") != "" && s.meets(SecondPageFails) {
		return broken()
	}
	var items []item
	for _, r := range s.refunds {
		if c.about(r.payment) && s.host.Mono()-r.at >= s.options.ListLag {
			items = append(items, item{r.id, r.created, r.object()})
		}
	}
	return c.page("refund", items)
}

func (s *Server) listDisputes(c *call) *answer {
	var items []item
	for _, d := range s.disputes {
		if c.about(d.payment) {
			items = append(items, item{d.id, d.created, d.object()})
		}
	}
	return c.page("dispute", items)
}

// listEvents lists events ("List all events").
func (s *Server) listEvents(c *call) *answer {
	wanted := append(slices.Clone(c.form["types[]"]), c.form["type"]...)
	for name, values := range c.form {
		if len(name) > 6 && name[:6] == "types[" && name != "types[]" {
			wanted = append(wanted, values...)
		}
	}
	var items []item
	for _, e := range s.events {
		if len(wanted) == 0 || slices.Contains(wanted, e.Type) {
			items = append(items, item{e.ID, e.Created, e})
		}
	}
	return c.page("event", items)
}
