// Clientgo runs client-go's readers against an API server and tells what they see.
//
// It prints one JSON object per line: every request it sends, and whatever its
// command reports. It goes on when a line comes in, and ends when its input does.
//
//	clientgo inform RESOURCE NAMESPACE          a dynamic shared informer and its lister
//	clientgo watch RESOURCE NAMESPACE VERSION   a watch with bookmarks, as it comes
//	clientgo page RESOURCE NAMESPACE LIMIT      a paged list; after each page it waits for a line
//	clientgo lead LEASE NAMESPACE               a leader elector, until a line comes
//
// RESOURCE is plural.version.group. The server is that of KUBECONFIG;
// KUBE_FEATURE_WatchListClient chooses between streaming lists and plain ones.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"
)

type report map[string]any

var printing sync.Mutex

func tell(what report) {
	printing.Lock()
	defer printing.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(what); err != nil {
		os.Exit(1)
	}
}

// listener is told of every request before it is sent.
type listener struct{ http.RoundTripper }

func (l listener) RoundTrip(request *http.Request) (*http.Response, error) {
	query := report{}
	for name, values := range request.URL.Query() {
		query[name] = values[0]
	}
	tell(report{"type": "REQUEST", "path": request.URL.Path, "query": query})
	return l.RoundTripper.RoundTrip(request)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		tell(report{"type": "FAILED", "message": err.Error()})
		os.Exit(1)
	}
}

// read gives the lines that come in.
func read() <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for input := bufio.NewScanner(os.Stdin); input.Scan(); {
			lines <- input.Text()
		}
	}()
	return lines
}

func run(args []string) error {
	if len(args) == 1 && args[0] == "protobuf" {
		return printMessages()
	}
	if len(args) < 3 {
		return fmt.Errorf("usage: clientgo inform|watch|page RESOURCE NAMESPACE [VERSION|LIMIT], or clientgo protobuf")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return listener{inner} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	if args[0] == "lead" {
		return lead(config, args[1], args[2], read())
	}
	resource, _ := schema.ParseResourceArg(args[1])
	if resource == nil {
		return fmt.Errorf("%q is not plural.version.group", args[1])
	}
	lines := read()
	switch args[0] {
	case "inform":
		return inform(client, *resource, args[2], lines)
	case "watch":
		return watch(client.Resource(*resource).Namespace(args[2]), args[3], lines)
	case "page":
		return page(client.Resource(*resource).Namespace(args[2]), args[3], lines)
	}
	return fmt.Errorf("no command %q", args[0])
}

func told(kind string, obj any) report {
	final, missed := obj.(cache.DeletedFinalStateUnknown)
	if missed {
		obj = final.Obj
	}
	item := obj.(*unstructured.Unstructured)
	return report{
		"type": kind, "name": item.GetName(), "version": item.GetResourceVersion(),
		"labels": item.GetLabels(), "missed": missed,
	}
}

func versionOf(obj any) string { return obj.(*unstructured.Unstructured).GetResourceVersion() }

// inform tells what the handlers of a dynamic informer are told. For each line that
// comes in, it tells what its lister lists: all of it, or what the line selects.
func inform(
	client dynamic.Interface, resource schema.GroupVersionResource, namespace string,
	lines <-chan string,
) error {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	generic := factory.ForResource(resource)
	registration, err := generic.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { tell(told("ADDED", obj)) },
		UpdateFunc: func(old, obj any) {
			// A relist says of every object that it was updated.
			if versionOf(old) != versionOf(obj) {
				tell(told("UPDATED", obj))
			}
		},
		DeleteFunc: func(obj any) { tell(told("DELETED", obj)) },
	})
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	defer factory.Shutdown()
	defer close(stop)
	factory.Start(stop)
	go func() {
		if cache.WaitForCacheSync(stop, registration.HasSynced) {
			tell(report{
				"type": "SYNCED", "version": generic.Informer().LastSyncResourceVersion(),
			})
		}
	}()
	for line := range lines {
		selector, err := labels.Parse(line)
		if err != nil {
			return err
		}
		found, err := generic.Lister().ByNamespace(namespace).List(selector)
		if err != nil {
			return err
		}
		names := []string{}
		for _, obj := range found {
			names = append(names, obj.(*unstructured.Unstructured).GetName())
		}
		slices.Sort(names)
		tell(report{"type": "LISTED", "names": names})
	}
	return nil
}

// watch tells each event of one watch, then its end.
func watch(client dynamic.ResourceInterface, version string, lines <-chan string) error {
	timeout := int64(6)
	stream, err := client.Watch(context.Background(), metav1.ListOptions{
		ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &timeout,
	})
	if err != nil {
		return err
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		if status, isStatus := event.Object.(*metav1.Status); isStatus {
			tell(report{"type": "ERROR", "code": status.Code, "reason": status.Reason})
			continue
		}
		tell(told(string(event.Type), event.Object))
	}
	tell(report{"type": "END"})
	for range lines {
	}
	return nil
}

// page tells each page of client-go's pager, and waits for a line after each.
func page(client dynamic.ResourceInterface, limit string, lines <-chan string) error {
	size, err := strconv.ParseInt(limit, 10, 64)
	if err != nil {
		return err
	}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list, err := client.List(ctx, options)
		if err != nil {
			tell(report{"type": "REFUSED", "message": err.Error()})
			return nil, err
		}
		names := []string{}
		for _, item := range list.Items {
			names = append(names, item.GetName())
		}
		tell(report{
			"type": "PAGE", "names": names, "version": list.GetResourceVersion(),
			"remaining": list.GetRemainingItemCount(),
		})
		select {
		case <-lines:
		case <-time.After(30 * time.Second):
		}
		return list, nil
	})
	pages.PageSize = size
	all, _, err := pages.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	names := []string{}
	err = meta.EachListItem(all, func(obj runtime.Object) error {
		names = append(names, obj.(*unstructured.Unstructured).GetName())
		return nil
	})
	tell(report{"type": "LISTED", "names": names})
	return err
}
