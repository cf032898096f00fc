package sqlite

import (
	"fmt"
	"strings"

	"github.com/foundling-go/foundling/internal/migration"
)

const scriptBegin = `-- Foundling: a store from schema version %[1]d to version %[2]d. Let it end at the first error, while nobody has the store open: sqlite3 -bail FILE
%[3]sBEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS ` + versionTable + ` (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  version_id INTEGER NOT NULL,
  is_applied INTEGER NOT NULL,
  tstamp     TIMESTAMP DEFAULT (datetime('now'))
);
INSERT INTO ` + versionTable + ` (version_id, is_applied) SELECT 0, 1 WHERE NOT EXISTS (SELECT 1 FROM ` + versionTable + `);
CREATE TEMP TABLE expected (version INTEGER CHECK (version = %[1]d));
INSERT INTO expected SELECT max(version_id) FROM ` + versionTable + `;
DROP TABLE expected;
`

// scriptIdentity draws the id of a store, as uuid.NewString does.
const scriptIdentity = "INSERT INTO meta (name, value) SELECT 'store_id', lower(substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-4' || substr(h, 14, 3) ||" +
	" '-a' || substr(h, 18, 3) || '-' || substr(h, 21, 12)) FROM (SELECT hex(randomblob(16)) AS h);\n"

// Script is the SQL that Open runs on a file whose store has a schema version, 0 where there is none: one transaction, which comes to nothing where
// the version is another one by then. It is empty where there is nothing to do.
func Script(from int) (string, error) {
	if from < 0 || from > SchemaVersion {
		return "", fmt.Errorf("sqlite: script: from version %d, want 0 to %d", from, SchemaVersion)
	}
	if from == SchemaVersion {
		return "", nil
	}
	file := ""
	if from == 0 {
		file = fmt.Sprintf("%s;\nPRAGMA application_id = %d;\nPRAGMA journal_mode = WAL;\n", setIncremental, applicationID)
	}
	var b strings.Builder
	fmt.Fprintf(&b, scriptBegin, from, SchemaVersion, file)
	for version := from + 1; version <= SchemaVersion; version++ {
		text, err := migration.Step(Migrations, version)
		if err != nil {
			return "", fmt.Errorf("sqlite: script: %w", err)
		}
		fmt.Fprintf(&b, "%sINSERT INTO %s (version_id, is_applied) VALUES (%d, 1);\n", text, versionTable, version)
	}
	if from == 0 {
		b.WriteString(scriptIdentity)
	}
	for _, w := range vocabulary() {
		fmt.Fprintf(&b, "INSERT OR IGNORE INTO words (kind, code, word) VALUES ('%s', %d, '%s');\n", w.kind, w.code, w.word)
	}
	b.WriteString("COMMIT;\n")
	return b.String(), nil
}
