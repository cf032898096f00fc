package pgtest

import (
	"net"
	"net/url"
	"strings"
)

// change is what another DSN for the same server differs by; what is empty stays as it is.
type change struct {
	user, password string
	database       string
	address        string // host:port of something without TLS
}

// of gives the DSN with the change. It takes both forms, URLs and name=value.
func (c change) of(dsn string) (string, error) {
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		return c.ofPairs(dsn), nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", errDSN // the cause would show the password
	}
	query := u.Query() // what it names goes before what the URL says
	if c.user != "" {
		u.User = url.UserPassword(c.user, c.password)
		query.Del("user")
		query.Del("password")
	}
	if c.database != "" {
		u.Path = "/" + c.database
		query.Del("dbname")
		query.Del("database")
	}
	if c.address != "" {
		u.Host = c.address
		for _, name := range []string{"host", "hostaddr", "port"} {
			query.Del(name)
		}
		query.Set("sslmode", "disable")
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// ofPairs appends: of a name that stands twice the last holds.
func (c change) ofPairs(dsn string) string {
	set := func(name, value string) {
		dsn += " " + name + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
	}
	if c.user != "" {
		set("user", c.user)
		set("password", c.password)
	}
	if c.database != "" {
		set("dbname", c.database)
	}
	if host, port, err := net.SplitHostPort(c.address); err == nil {
		set("host", host)
		set("port", port)
		set("sslmode", "disable")
	}
	return dsn
}
