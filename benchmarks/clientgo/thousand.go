package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// thousand has an informer for each of many namespaces, or of many CRDs. It connects, says so, and
// goes on with each line that it gets: begin, rest, end. KUBECONFIG says where the server is.
func thousand(kind string, count int) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	config.QPS = -1 // no rate limit
	client, err := dynamic.NewForConfig(config)
	check(err)
	lines := bufio.NewScanner(os.Stdin)
	say := func(figures map[string]any) {
		figures["rss"] = float64(memory("VmRSS")) / 1e6
		files, err := os.ReadDir("/proc/self/fd")
		check(err)
		tasks, err := os.ReadDir("/proc/self/task")
		check(err)
		figures["files"], figures["threads"] = len(files), len(tasks)
		report("", figures)
		if !lines.Scan() {
			os.Exit(0)
		}
	}
	first := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	connected := first.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Informer()
	stop, cancel := context.WithCancel(context.Background())
	first.Start(stop.Done())
	cache.WaitForCacheSync(nil, connected.HasSynced)
	cancel()
	free()
	say(map[string]any{})

	begun, spent := time.Now(), cpu()
	var synced []cache.InformerSynced
	all := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	for at := range count {
		if kind == "crds" {
			name := fmt.Sprintf("widgets%d", at)
			informer := all.ForResource(schema.GroupVersionResource{
				Group: "load.example.com", Version: "v1", Resource: name}).Informer()
			synced = append(synced, informer.HasSynced)
			continue
		}
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(
			client, 0, fmt.Sprintf("team-%d", at), func(*metav1.ListOptions) {})
		configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		synced = append(synced, factory.ForResource(configMaps).Informer().HasSynced)
		factory.Start(context.Background().Done())
	}
	all.Start(context.Background().Done())
	for _, each := range synced { // WaitForCacheSync looks ten times a second
		for !each() {
			time.Sleep(time.Millisecond)
		}
	}
	seconds, used := time.Since(begun).Seconds(), cpu()-spent
	say(map[string]any{"seconds": seconds, "cpu": used, "troubles": ""})
	spent = cpu()
	time.Sleep(5 * time.Second)
	rested := cpu() - spent
	free()
	say(map[string]any{"cpu": rested})
	say(map[string]any{"seconds": 0})
}
