package foundling

import (
	"context"

	"github.com/foundling-go/foundling/events"
)

// TraceContext carries the trace of who enqueues a message over to its handler. With OpenTelemetry it is a few lines around its
// propagation.TraceContext. Its methods are called from many goroutines, must not block, and must not panic.
type TraceContext interface {
	// Inject is the W3C traceparent of the span that ctx stands in; empty where it stands in none. What is no traceparent of version 00 is not kept.
	Inject(ctx context.Context) (traceparent string)
	// Extract is ctx with the span of a traceparent as its remote parent. It is called for each run of a handler whose message has one.
	Extract(ctx context.Context, traceparent string) context.Context
}

// injected is the traceparent of ctx; empty where it has none that is kept.
func (c *Client) injected(ctx context.Context) string {
	if c.opts.Trace == nil {
		return ""
	}
	return events.Traceparent(c.opts.Trace.Inject(ctx))
}

// extracted is ctx below the span of whoever enqueued a message.
func (c *Client) extracted(ctx context.Context, traceparent string) context.Context {
	if c.opts.Trace == nil || traceparent == "" {
		return ctx
	}
	return c.opts.Trace.Extract(ctx, traceparent)
}
