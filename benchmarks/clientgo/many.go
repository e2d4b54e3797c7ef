package main

import (
	"bufio"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/tools/cache"
)

const (
	underOneValue = 1_000 // of so many objects the index has the same value
	longest       = 1 << 20
	most          = 9 // times that a read is measured
)

// readMany fills the indexer of a dynamic informer with the certificates of the input, one on a
// line, and reports what an object costs that a read returns, or looks at, in CPU seconds.
func readMany() {
	indexer := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{"group": group})
	lines := bufio.NewReaderSize(os.Stdin, longest)
	count := 0
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		check(err)
		object := &unstructured.Unstructured{}
		check(object.UnmarshalJSON(line))
		check(indexer.Add(object))
		count++
	}
	lister := dynamiclister.New(indexer, certificates)
	list := func(text string) []*unstructured.Unstructured {
		selector, err := labels.Parse(text)
		check(err)
		found, err := lister.List(selector)
		check(err)
		return found
	}
	byIndex := func() []any {
		found, err := indexer.ByIndex("group", "0")
		check(err)
		return found
	}
	report("many", map[string]any{
		"list_shared":  leastOf(count, func() { listed = list("") }),
		"list_copied":  leastOf(count, func() { listed = copies(list("")) }),
		"index_shared": leastOf(underOneValue, func() { found = byIndex() }),
		"index_copied": leastOf(underOneValue, func() { listed = copiesOf(byIndex()) }),
		"scan_none":    leastOf(count, func() { listed = list("app=shop") }),
		"scan_third":   leastOf(count, func() { listed = list("tier=batch") }),
	})
}

// listed and found are written so that no read is optimised away.
var (
	listed []*unstructured.Unstructured
	found  []any
)

func copies(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		all = append(all, object.DeepCopy())
	}
	return all
}

func copiesOf(objects []any) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		all = append(all, object.(*unstructured.Unstructured).DeepCopy())
	}
	return all
}

func group(obj any) ([]string, error) {
	parts := strings.Split(obj.(*unstructured.Unstructured).GetName(), "-")
	number, err := strconv.Atoi(parts[1])
	return []string{strconv.Itoa(number / underOneValue)}, err
}

// leastOf gives the CPU seconds of one object of so many: those of all threads, so that what the
// garbage collector does meanwhile is in it.
func leastOf(count int, read func()) float64 {
	least := math.Inf(1)
	for range min(most, max(3, 100_000/count)) {
		listed, found = nil, nil
		runtime.GC()
		start := cpu()
		read()
		least = min(least, cpu()-start)
	}
	return least / float64(count)
}
