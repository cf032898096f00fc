package foundling_test

import (
	"context"
	"fmt"

	"github.com/foundling-go/foundling"
	"github.com/foundling-go/foundling/store"
)

// An engine keeps what it is given in a transaction of the caller's own. Users call what it offers for that, such as postgres.EnqueueTx.
func ExampleClient_Stage() {
	client, s := inMemory()
	defer s.end()
	ids, err := client.Stage(ctx, []foundling.Draft{mail.Draft("hello", foundling.EnqueueOptions{})},
		func(_ context.Context, _ store.Store, list []store.Staged) error {
			for _, message := range list {
				fmt.Printf("%s for topic %s: %s\n", foundling.Staged, message.Topic, message.Payload.Bytes)
			}
			return nil
		})
	check(err)
	fmt.Println(len(ids), "message")
	// Output:
	// staged for topic mail: "hello"
	// 1 message
}
