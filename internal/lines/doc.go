// Package lines reads input as records and names each by its bytes and how
// many equal ones came before it.
//
// A [Reader] cuts the input into records, a [Tally] counts equal ones, and
// [Name] turns (record, occurrence) into an id. Reading the same input again,
// in any order, gives the same set of ids; so a record that was done once is
// recognised, and one that was added since is not.
//
//	reader, err := lines.NewReader(os.Stdin, lines.ReaderOptions{})
//	…
//	for {
//		record, err := reader.Next()
//		var tooLong *lines.TooLongError
//		switch {
//		case err == io.EOF:
//			return nil
//		case errors.As(err, &tooLong):
//			report(err) // and go on: the next call gives the next record
//		case err != nil:
//			return err
//		default:
//			batch = append(batch, bytes.Clone(record.Bytes))
//		}
//		if len(batch) == 500 || !reader.Ready() {
//			commit(batch)
//		}
//	}
//
// Memory is flat: a Reader holds one record at most besides a 64 KiB buffer,
// and a Tally keeps its counts in a temporary file.
package lines
