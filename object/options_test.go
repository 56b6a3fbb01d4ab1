package object_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// An option that is less than zero is refused by its name and value.
func TestNegativeOptionsAreNamed(t *testing.T) {
	try := func(options any, open func() error) {
		v := reflect.ValueOf(options).Elem()
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			if !f.CanInt() || name == "HoldLimit" { // a negative one is none
				continue
			}
			f.SetInt(-1)
			err, want := open(), fmt.Sprintf("%s must not be negative: %v", name, f.Interface())
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%T: error %v, want one that says %q", options, err, want)
			}
			f.SetInt(0)
		}
	}
	var class object.ClassOptions
	options := object.Options{Storage: storage.Options{Engine: memstore.New()}}
	open := func() error {
		c := object.Define("c", func(context.Context, *object.State) (*struct{}, error) { return nil, nil }, class)
		_, err := object.Open(options, c)
		return err
	}
	try(&class, open)
	try(&options, open)
}
