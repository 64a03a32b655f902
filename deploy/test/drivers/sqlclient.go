// Asks as Grafana's ClickHouse data source does, over HTTP: for tables and columns, then for rows. Prints one value a line.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/ClickHouse/clickhouse-go/v2"
)

func main() {
	db := clickhouse.OpenDB(&clickhouse.Options{
		Addr:        []string{"127.0.0.1:" + os.Getenv("SQL_PORT")},
		Protocol:    clickhouse.HTTP,
		Auth:        clickhouse.Auth{Database: "gamenet_analyst", Username: "gamenet_analyst", Password: os.Getenv("SQL_PASSWORD")},
		Compression: &clickhouse.Compression{Method: clickhouse.CompressionGZIP},
	})
	for _, statement := range append([]string{"SHOW DATABASES", "SHOW TABLES FROM `gamenet_analyst`", "DESC TABLE `gamenet_analyst`.`title_count`"}, os.Args[1:]...) {
		rows, err := db.QueryContext(context.Background(), statement)
		if err != nil {
			panic(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			panic(err)
		}
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		for rows.Next() {
			if err := rows.Scan(values...); err != nil {
				panic(err)
			}
			fmt.Println(*values[0].(*any))
		}
		if err := rows.Err(); err != nil {
			panic(err)
		}
	}
}
