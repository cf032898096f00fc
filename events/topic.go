package events

// TopicConfigured : the topic is known from here on, or its settings changed. It carries all settings as they are afterwards.
type TopicConfigured struct {
	Limit    int  // open claims at most, over all processes; 0 is no limit
	Counting bool // claims made before there was a limit are not counted yet: none is granted until topic.counted
	By       string
	Detail   string
}

// Type is topic.configured.
func (*TopicConfigured) Type() Type { return TypeTopicConfigured }

// VisitFields names the event's fields.
func (e *TopicConfigured) VisitFields(f *Fields) {
	f.Int("limit", &e.Limit)
	f.Flag("counting", &e.Counting)
	f.Text("by", &e.By)
	f.Text("detail", &e.Detail)
}

// TopicCounted : the claims that were open before the topic had a limit all count towards it by now.
type TopicCounted struct{}

// Type is topic.counted.
func (*TopicCounted) Type() Type { return TypeTopicCounted }

// VisitFields names the event's fields: it has none.
func (*TopicCounted) VisitFields(*Fields) {}

// TopicPaused : no message of the topic is claimed until it is resumed.
type TopicPaused struct {
	By     string
	Detail string
}

// Type is topic.paused.
func (*TopicPaused) Type() Type { return TypeTopicPaused }

// VisitFields names the event's fields.
func (e *TopicPaused) VisitFields(f *Fields) {
	f.Text("by", &e.By)
	f.Text("detail", &e.Detail)
}

// TopicResumed : its messages are claimed again.
type TopicResumed struct {
	By     string
	Detail string
}

// Type is topic.resumed.
func (*TopicResumed) Type() Type { return TypeTopicResumed }

// VisitFields names the event's fields.
func (e *TopicResumed) VisitFields(f *Fields) {
	f.Text("by", &e.By)
	f.Text("detail", &e.Detail)
}
