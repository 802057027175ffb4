//! etcd stops, is killed, restarts, or never ran.

use super::{Client, FromStore, Server, free_ports, with_etcd};
use cosched_cluster::store::{Do, Op, OpDone, Range, StoreError, Txn};
use rustix::process::Signal;
use std::time::{Duration, Instant};
use tokio::time::sleep;

#[test]
fn a_server_that_stands_still_is_unavailable_in_time_and_goes_on_afterwards() {
    with_etcd(|| async {
        let server = Server::start();
        let mut client = Client::of(&server.config()).await;
        client.put("a", "1").await.unwrap();
        let watch = client.begin(Op::Watch { range: Range::one("a"), from: 1 });
        assert!(matches!(client.told().await, FromStore::Done(id, Ok(OpDone::Watching)) if id == watch));
        assert!(matches!(client.told().await, FromStore::News(id, _) if id == watch));
        server.signal(Signal::STOP);
        // It may still answer until the signal has arrived.
        sleep(Duration::from_millis(200)).await;
        let begin = Instant::now();
        let refused = client.get("a").await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        sleep(Duration::from_secs(1)).await;
        server.signal(Signal::CONT);
        let mut tries = 0;
        while client.get("a").await.is_err() {
            tries += 1;
            assert!(tries < 20);
            sleep(Duration::from_millis(100)).await;
        }
        client.put("a", "2").await.unwrap();
        let told = client.told().await;
        assert!(matches!(&told, FromStore::News(id, _) if *id == watch), "the watch goes on: {told:?}");
    });
}

#[test]
fn what_a_server_that_was_killed_had_promised_is_there_when_it_is_back() {
    with_etcd(|| async {
        let mut server = Server::start();
        let mut client = Client::of(&server.config()).await;
        client.put("a", "1").await.unwrap();
        let granted = client.call(Op::Grant { ttl_s: 30 }).await.unwrap();
        let OpDone::Granted { lease, .. } = granted else { panic!("{granted:?}") };
        let then = vec![Do::Put { key: "b".to_owned(), value: b"2".to_vec(), lease: Some(lease) }];
        client.call(Op::Txn(Txn { then, ..Txn::default() })).await.unwrap();
        let watch = client.begin(Op::Watch { range: Range::prefix("w/"), from: 1 });
        assert!(matches!(client.told().await, FromStore::Done(_, Ok(OpDone::Watching))));
        server.kill();
        let told = client.told().await;
        assert!(matches!(&told, FromStore::WatchLost(id, StoreError::Unavailable(_)) if *id == watch), "{told:?}");
        let refused = client.get("a").await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        server.restart();
        let mut client = Client::of(&server.config()).await;
        assert_eq!(client.get("a").await, Ok(Some("1".to_owned())));
        assert_eq!(client.get("b").await, Ok(Some("2".to_owned())), "the lease has not run out");
        let kept = client.call(Op::KeepAlive(lease)).await.unwrap();
        assert!(matches!(kept, OpDone::KeptAlive { ttl_s: 30 }), "{kept:?}");
    });
}

#[test]
fn the_next_endpoint_is_tried_when_one_does_not_answer() {
    with_etcd(|| async {
        let server = Server::start();
        drop(Client::of(&server.config()).await);
        let dead = format!("http://127.0.0.1:{}", free_ports().0);
        let mut config = server.config();
        config.endpoints = vec![dead.clone(), dead, server.endpoint()];
        let mut client = Client::new(&config);
        let mut failed = 0;
        while let Err(e) = client.put("a", "1").await {
            assert!(matches!(e, StoreError::Unavailable(_)), "{e:?}");
            failed += 1;
            assert!(failed < 5);
        }
        assert_eq!(failed, 2);
        assert_eq!(client.get("a").await, Ok(Some("1".to_owned())), "it stays with the one that answers");
    });
}

#[test]
fn what_is_no_endpoint_is_refused_before_anything_runs() {
    with_etcd(|| async {
        let (to, _from) = tokio::sync::mpsc::unbounded_channel();
        let config = |endpoints: &[&str]| super::EtcdConfig {
            endpoints: endpoints.iter().map(|text| (*text).to_owned()).collect(),
            tls: None,
            user: None,
            answer_max: Duration::from_secs(1),
        };
        for (endpoints, expected) in [
            (&[][..], "no endpoint is set"),
            (&["10.0.0.1:2379"][..], "it has to begin with http:// or https://"),
            (&["http://a b"][..], "http://a b cannot be used"),
            (&["https://127.0.0.1:1"][..], "https needs `ca_file`"),
        ] {
            let refused = super::Etcd::new(&config(endpoints), to.clone()).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    });
}
