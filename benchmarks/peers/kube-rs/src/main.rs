//! The peer in Rust: kube-rs's reflector over its watcher, for objects of no known type.
//!
//! `sync GROUP VERSION KIND PLURAL MODE` fills a store when it is told to and prints how many
//! objects are in it; `hold GROUP VERSION KIND PLURAL NAMESPACE` prints what is in its store after
//! each event, versions by name. KUBECONFIG says where the server is.

use std::error::Error;

use futures::{Stream, StreamExt};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::reflector::store::{Store, Writer};
use kube::runtime::watcher::{Config, Event, Result as Watched};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Client, ResourceExt};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

type Failure = Box<dyn Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, group, version, kind, plural, last] = &arguments[..] else {
        return Err("see the first lines of main.rs for the arguments".into());
    };
    let kind = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let client = Client::try_default().await?;
    match command.as_str() {
        "sync" => sync(client, &resource, last == "WatchList").await,
        "hold" => hold(client, &resource, last).await,
        _ => Err(format!("there is no command {command:?}").into()),
    }
}

/// Connect, wait for a line, fill the store, and stay until the input ends.
async fn sync(client: Client, resource: &ApiResource, streaming: bool) -> Result<(), Failure> {
    client.apiserver_version().await?;
    println!("ready");
    let mut lines = BufReader::new(stdin()).lines();
    lines.next_line().await?;
    let config = if streaming { Config::default().streaming_lists() } else { Config::default() };
    let (store, events) = reflected(Api::all_with(client, resource), resource, config);
    tokio::spawn(events.for_each(|event| async move { complain(event) }));
    store.wait_until_ready().await?;
    println!("{}", store.len());
    while lines.next_line().await?.is_some() {}
    Ok(())
}

/// Print what is held, in a line of JSON, after each event; for ever.
async fn hold(client: Client, resource: &ApiResource, namespace: &str) -> Result<(), Failure> {
    let api = Api::namespaced_with(client, namespace, resource);
    let (store, events) = reflected(api, resource, Config::default());
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let partial = matches!(event, Ok(Event::Init | Event::InitApply(_)));
        complain(event);
        if !partial {
            let held = store.state().into_iter().map(|each| {
                (each.name_any(), each.resource_version().unwrap_or_default().into())
            });
            println!("{}", serde_json::Value::Object(held.collect()));
        }
    }
    Ok(())
}

/// A store, and the events that fill it: after an error it goes on, as kube-rs's controllers do.
fn reflected(
    api: Api<DynamicObject>,
    resource: &ApiResource,
    config: Config,
) -> (Store<DynamicObject>, impl Stream<Item = Watched<Event<DynamicObject>>> + use<>) {
    let writer = Writer::new(resource.clone());
    (writer.as_reader(), reflector(writer, watcher(api, config).default_backoff()))
}

fn complain(event: Watched<Event<DynamicObject>>) {
    if let Err(error) = event {
        eprintln!("{error}");
    }
}
