// Package foundlingtest is for the tests of programs that use Foundling: a client over an empty store in memory, on a time that the test
// moves, with assertions on what was enqueued and on what the log says.
//
//	func TestOrderSendsOneReceipt(t *testing.T) {
//		c := foundlingtest.New(t)
//		placeOrder(t.Context(), c.Client, "A-17") // the code under test
//		m := foundlingtest.RequireEnqueued(t, c, receipts, Receipt{"4411", "A-17"}, foundling.EnqueueOptions{Lock: "user:4411"})
//
//		c.RunUntilEnded(t, func(w *foundling.Worker) { receipts.Handle(w, send) })
//		foundlingtest.RequireState(t, c, m.Info.ID, foundling.Completed)
//	}
//
// # Handlers
//
// [Client.RunUntilIdle] runs a worker until nothing more is to be handled now. [Client.RunUntilEnded] also lets the time go by to whatever is
// due later, retries above all, until everything has ended. [Client.Start] runs a worker beside the test. All of them handle one message at
// a time, unless [Options] say otherwise, so that the same test comes out the same; and they do not sweep.
//
// # Time
//
// In a bubble of testing/synctest the store's time is the bubble's: the test sleeps, and [Client.Advance] does. Handlers, their time-outs and
// the store then have one time. Make the client inside the bubble.
//
// Outside of one the store's time stands still at [Options.Start] until Advance or RunUntilEnded moves it, at once. What is due, retries and
// snoozes, how long keys are taken and how old things are follow the store's time. Handlers do not: context deadlines, EnqueueOptions.Timeout
// and a worker's heartbeats take real time there. For these use a bubble.
//
// # What it does not do
//
// It checks no law of Foundling's own: a test of a handler cannot break one, and the engines have their own tests. To have it done all the same,
// give [Client.Store] to replay.Verify at the end. It kills no process; what a dead worker's message goes through is shown by testdata/scenarios.
// A store of your own proves itself with store/storetest.
//
// Asserting functions take the test that they fail, and everything that they print is counted from when the client was made and calls messages
// by their topic and place in it ("receipts 1" is the first message of topic receipts), so that the text of a failure is the same each time.
package foundlingtest
