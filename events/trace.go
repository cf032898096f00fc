package events

import "strings"

// Traceparent is a W3C trace context as the log keeps it: version 00, in its one canonical form of 55 bytes. Anything else is not kept, and
// gives an empty text: what a caller hands over is no reason to refuse his work.
func Traceparent(text string) string {
	parts := strings.Split(text, "-")
	if len(text) != 55 || len(parts) != 4 || parts[0] != "00" || !hex(parts[1], 32) || !hex(parts[2], 16) || !hex(parts[3], 2) {
		return ""
	}
	if strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return "" // ids of zeros alone name nothing
	}
	return text
}

// hex reports whether a text is so many lower-case hexadecimal digits.
func hex(text string, n int) bool {
	return len(text) == n && strings.Trim(text, hexDigits) == ""
}
