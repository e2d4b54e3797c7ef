package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

var inV1 = regexp.MustCompile(`/(\w+)/(v\d\w*)\.(\w+)$`)

// scalars are the types that are no messages of their own in JSON.
var scalars = map[string]string{
	"meta.Time": "time", "meta.MicroTime": "microtime", "meta.FieldsV1": "json",
	"resource.Quantity":  "quantity",
	"intstr.IntOrString": "intstr", "runtime.RawExtension": "json",
}

type messageTable struct {
	fields map[string]string
	types  map[string]reflect.Type
}

// printMessages prints how protobuf bodies are laid out: first the kinds with their messages,
// then each message with its fields. Standard input names the kinds: such a print will do, or
// lines of "GROUP/VERSION KIND = ".
func printMessages() error {
	table := messageTable{map[string]string{}, map[string]reflect.Type{}}
	var lines []string
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		head, _, named := strings.Cut(input.Text(), " = ")
		version, kind, two := strings.Cut(head, " ")
		if !named || !two {
			continue
		}
		gv, err := schema.ParseGroupVersion(version)
		if err != nil {
			return err
		}
		object, err := scheme.Scheme.New(gv.WithKind(kind))
		if err != nil {
			return err
		}
		name, err := table.message(reflect.TypeOf(object).Elem())
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%s %s = %s", version, kind, name))
	}
	sort.Strings(lines)
	var messages []string
	for name, fields := range table.fields {
		messages = append(messages, strings.TrimRight(name+":"+fields, " "))
	}
	sort.Strings(messages)
	fmt.Println(strings.Join(append(lines, messages...), "\n"))
	return nil
}

// name is the last part of a package, its version where that is not v1, and the type's name.
func name(t reflect.Type) string {
	full := t.PkgPath() + "." + t.Name()
	if found := inV1.FindStringSubmatch(full); found != nil {
		if found[2] == "v1" {
			return found[1] + "." + found[3]
		}
		return found[1] + "." + found[2] + "." + found[3]
	}
	return full[strings.LastIndex(full, "/")+1:]
}

// message notes a struct's fields, and those of all that it holds.
func (table *messageTable) message(t reflect.Type) (string, error) {
	id := name(t)
	if other, known := table.types[id]; known {
		if other != t {
			return "", fmt.Errorf("two types are called %s: %s and %s", id, other, t)
		}
		return id, nil
	}
	table.types[id] = t
	table.fields[id] = ""
	var fields strings.Builder
	for _, field := range reflect.VisibleFields(t) {
		if len(field.Index) > 1 {
			continue
		}
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		form, err := table.form(field.Type)
		if err != nil {
			return "", fmt.Errorf("%s.%s: %w", id, field.Name, err)
		}
		json := strings.Split(field.Tag.Get("json"), ",")
		if json[0] == "" {
			form = "&" + form
		} else if !strings.Contains(field.Tag.Get("json"), ",omit") && !strings.HasSuffix(form, "?") {
			form += "!"
		}
		fmt.Fprintf(&fields, " %s=%s:%s", tag[1], json[0], form)
	}
	table.fields[id] = fields.String()
	return id, nil
}

// form says how a field's bytes become JSON.
func (table *messageTable) form(t reflect.Type) (string, error) {
	if t.Kind() == reflect.Pointer {
		form, err := table.form(t.Elem())
		return form + "?", err
	}
	if form, found := scalars[name(t)]; found {
		return form, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return "bool", nil
	case reflect.String:
		return "str", nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "int", nil
	case reflect.Struct:
		return table.message(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes", nil
		}
		form, err := table.form(t.Elem())
		if _, wrapped := reflect.PointerTo(t).MethodByName("MarshalTo"); wrapped {
			return "items", err // protobuf has no maps of lists: a message holds them
		}
		return form + "[]", err
	case reflect.Map:
		form, err := table.form(t.Elem())
		return "{" + form + "}", err
	}
	return "", fmt.Errorf("no form for %s", t)
}
