package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// syncWhenTold connects, waits for a line, fills an informer's cache, prints how many objects are
// in it, and stays until the input ends. KUBECONFIG says where the server is.
func syncWhenTold(mode string) {
	check(os.Setenv("KUBE_FEATURE_WatchListClient", strconv.FormatBool(mode == "WatchList")))
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	config.QPS = -1 // no rate limit
	client, err := dynamic.NewForConfig(config)
	check(err)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	connected := factory.ForResource(crds).Informer()
	factory.Start(context.Background().Done())
	cache.WaitForCacheSync(nil, connected.HasSynced)
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	lines.Scan()
	informer := factory.ForResource(certificates).Informer()
	factory.Start(context.Background().Done())
	cache.WaitForCacheSync(nil, informer.HasSynced)
	fmt.Println(len(informer.GetStore().ListKeys()))
	for lines.Scan() {
	}
}
