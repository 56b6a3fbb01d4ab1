package pglog_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/storage/shardlog/pglog"
)

// A program of an operator looks at the server behind a log, also when Open refuses its settings.
func ExampleInspect() {
	if err := tell(context.Background(), "postgres://holdfast@db1,db2/app"); err != nil {
		log.Fatal(err)
	}
}

func tell(ctx context.Context, dsn string) error {
	logs, err := pglog.Inspect(ctx, pglog.Options{DSN: dsn})
	if err != nil {
		return err
	}
	defer logs.Close()
	health, err := logs.Health(ctx)
	if err != nil {
		return err
	}
	fmt.Println("PostgreSQL", health.Version, health.Unsafe)
	for _, hold := range health.Holds {
		fmt.Println(hold)
	}
	return nil
}
