package record

import (
	"reflect"
	"testing"
)

// TestLoadComesBack: no field of Load is forgotten in the file.
func TestLoadComesBack(t *testing.T) {
	var l Load
	v := reflect.ValueOf(&l).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(i + 1))
		case reflect.Float64:
			f.SetFloat(float64(i) + 0.5)
		case reflect.String:
			f.SetString(v.Type().Field(i).Name)
		default:
			t.Fatalf("a field of kind %v", f.Kind())
		}
	}
	h := Header{Kind: KindRecording, Run: &Run{Model: "m", Load: l}}
	item, err := encodeHeader(h)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeHeader(item)
	if err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("%v: %+v, want %+v", err, got.Run, h.Run)
	}
}
