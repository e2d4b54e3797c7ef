package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lead competes for a lease until a line comes in, and gives it up then.
func lead(config *rest.Config, name, namespace string, lines <-chan string) error {
	client, err := coordination.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-lines
		cancel()
	}()
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: name, Namespace: namespace},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: "in-go"},
		},
		LeaseDuration:   4 * time.Second,
		RenewDeadline:   3 * time.Second,
		RetryPeriod:     200 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { tell(report{"type": "LEADS"}) },
			OnStoppedLeading: func() { tell(report{"type": "STOPPED"}) },
			OnNewLeader:      func(identity string) { tell(report{"type": "LEADER", "name": identity}) },
		},
	})
	return nil
}
