// The peer in Go: client-go's dynamic informer, taken through the phases of measuring.py.
//
// Arguments: URL, mode, objects, updates, paced updates. One JSON object per phase is printed.
// Or: sync, mode, for what is in sync.go; many, for what is in many.go; thousand, kind, count, for
// what is in thousand.go.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	perNamespace = 500
	reads        = 100_000
	hot          = 1_000
	quiet        = time.Second
	quietShare   = 0.03
)

var (
	certificates = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	issuers      = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "issuers"}
	crds         = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

// handler reads one field of each update, and lets main wait for so many of them.
type handler struct {
	sync.Mutex
	latencies []int64
	wanted    int
	enough    chan struct{}
}

func (h *handler) expect(count int) {
	h.Lock()
	defer h.Unlock()
	h.latencies, h.wanted, h.enough = nil, count, make(chan struct{})
}

func (h *handler) onUpdate(_, changed any) {
	annotation, _, err := unstructured.NestedString(
		changed.(*unstructured.Unstructured).Object, "metadata", "annotations", "example.com/sent")
	check(err)
	sent, err := strconv.ParseInt(annotation, 10, 64)
	check(err)
	h.Lock()
	defer h.Unlock()
	h.latencies = append(h.latencies, time.Now().UnixNano()-sent)
	if len(h.latencies) == h.wanted {
		close(h.enough)
	}
}

func main() {
	if os.Args[1] == "thousand" {
		thousand(os.Args[2], number(os.Args[3]))
		return
	}
	if os.Args[1] == "sync" {
		syncWhenTold(os.Args[2])
		return
	}
	if os.Args[1] == "many" {
		readMany()
		return
	}
	url, mode := os.Args[1], os.Args[2]
	count, updates, paced := number(os.Args[3]), number(os.Args[4]), number(os.Args[5])
	check(os.Setenv("KUBE_FEATURE_WatchListClient", strconv.FormatBool(mode == "WatchList")))
	client, err := dynamic.NewForConfig(&rest.Config{Host: url, QPS: -1}) // no rate limit
	check(err)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	empty := factory.ForResource(issuers).Informer()
	factory.Start(context.Background().Done())
	cache.WaitForCacheSync(nil, empty.HasSynced)

	generic := factory.ForResource(certificates)
	informer := generic.Informer()
	check(informer.AddIndexers(cache.Indexers{
		"by-issuer": field("spec", "issuerRef", "name"),
		"by-secret": field("spec", "secretName"),
	}))
	handled := &handler{}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: handled.onUpdate})
	check(err)

	free()
	untilQuiet()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	rss, start := memory("VmRSS"), cpu()
	factory.Start(context.Background().Done())
	cache.WaitForCacheSync(nil, informer.HasSynced)
	synced := cpu() - start
	untilQuiet()
	spent, peak := cpu()-start, memory("VmHWM")
	free()
	keys, err := informer.GetIndexer().IndexKeys("by-issuer", "internal-ca-1")
	check(err)
	report("sync", map[string]any{
		"cpu_synced": synced, "cpu": spent, "rss_start": rss, "rss": memory("VmRSS"), "peak": peak,
		"indexed": len(keys),
	})
	if updates == 0 {
		return
	}

	spent = handle("updates", handled, updates)
	report("burst", map[string]any{
		"cpu": spent / float64(updates), "rss": memory("VmRSS"), "peak": memory("VmHWM"),
	})
	handle("paced updates", handled, paced)
	waited := slices.Sorted(slices.Values(handled.latencies))
	report("latency", map[string]any{
		"p50": float64(waited[len(waited)/2]) / 1e9, "p99": float64(waited[len(waited)*99/100]) / 1e9,
	})

	places := rand.New(rand.NewSource(1)).Perm(count)
	lister := generic.Lister()
	get := func(number int) *unstructured.Unstructured {
		found, err := lister.ByNamespace(namespaces[number]).Get(names[number])
		check(err)
		return found.(*unstructured.Unstructured)
	}
	prepareNames(count)
	shared := each(places[:min(hot, count)], reads/hot, func(number int) { kept = get(number) })
	private := each(places[:min(reads, count)], 1, func(number int) { kept = get(number).DeepCopy() })
	report("reads", map[string]any{"private": private, "shared": shared})
}

// kept is written so that no read is optimised away.
var (
	kept              *unstructured.Unstructured
	namespaces, names []string
)

func prepareNames(count int) {
	for number := range count {
		namespaces = append(namespaces, fmt.Sprintf("team-%04d", number/perNamespace))
		names = append(names, fmt.Sprintf("shop-%06d-tls", number))
	}
}

func field(path ...string) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		value, found, err := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, path...)
		if err != nil || !found {
			return nil, err
		}
		return []string{value}, nil
	}
}

// handle tells the driver to begin, and gives the CPU seconds until all updates were handled.
func handle(name string, handled *handler, count int) float64 {
	handled.expect(count)
	start := cpu()
	report("ready for "+name, map[string]any{})
	select {
	case <-handled.enough:
	case <-time.After(10 * time.Minute):
		panic("the updates did not come")
	}
	return cpu() - start
}

// each gives the CPU seconds of one read; several rounds begin with one that is not counted.
func each(places []int, rounds int, read func(int)) float64 {
	if rounds > 1 {
		for _, place := range places {
			read(place)
		}
	}
	runtime.GC()
	start := cpu()
	for range rounds {
		for _, place := range places {
			read(place)
		}
	}
	return (cpu() - start) / float64(rounds*len(places))
}

// free gives back what the collector would keep for later: the least that the program can hold.
func free() {
	runtime.GC()
	debug.FreeOSMemory()
}

func untilQuiet() {
	for range 30 {
		start := cpu()
		time.Sleep(quiet)
		if cpu()-start < quietShare*quiet.Seconds() {
			return
		}
	}
}

// cpu is what this process has used, in seconds, on all its threads.
func cpu() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

func memory(name string) int {
	status, err := os.ReadFile("/proc/self/status")
	check(err)
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, name+":"); found {
			return number(strings.Fields(rest)[0]) * 1024
		}
	}
	panic("no " + name)
}

func report(phase string, figures map[string]any) {
	figures["phase"] = phase
	check(json.NewEncoder(os.Stdout).Encode(figures))
}

func number(text string) int {
	parsed, err := strconv.Atoi(text)
	check(err)
	return parsed
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
