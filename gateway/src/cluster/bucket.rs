//! The key-value bucket of the members, as JetStream keeps it for frontends that come
//! later. Where JetStream is off, announcements are said and not kept.

use std::time::Duration;

use async_nats::jetstream::kv::{Entry, Operation, Store};
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, Error};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tracing::{debug, info, warn};

use super::codec::{self, LONGEST_TTL};
use super::name::WorkerName;
use super::subject;
use crate::server::causes::causes;

/// How long JetStream may take for one answer.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// How long it is left alone after it could not be opened: a user who may not is told
/// nothing, and has to wait for no answer each time.
const LEFT_ALONE: Duration = Duration::from_secs(30);

/// What became of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It was said, and is kept for those who come later.
    InBucket,
    /// It was said to those who are there.
    SaidOnly,
    /// NATS did not take it.
    Lost,
}

/// The bucket, opened when it is needed, and opened again when it is gone.
pub struct Bucket {
    client: Client,
    jetstream: Context,
    store: Option<Store>,
    revision: Option<u64>,
    /// Whether it was told that there is none.
    told: bool,
    /// When it could not be opened.
    failed: Option<Instant>,
}

impl Bucket {
    /// Asks for nothing yet.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let mut jetstream = jetstream::new(client.clone());
        jetstream.set_timeout(ANSWER_TIME);
        Self {
            client,
            jetstream,
            store: None,
            revision: None,
            told: false,
            failed: None,
        }
    }

    /// The incarnation that is kept of a worker.
    pub async fn earlier(&mut self, name: &WorkerName) -> Option<u64> {
        let store = self.store().await?;
        let kept = store.get(name.as_str()).await.ok()??;
        let said = codec::announcement(&kept, name).ok()?;
        Some(said.turn.incarnation)
    }

    /// Keeps and says an announcement. A server that was started anew may have lost the
    /// bucket: then it is made again.
    pub async fn put(&mut self, name: &WorkerName, said: Bytes) -> Kept {
        for _ in 0..2 {
            let Some(store) = self.store().await else {
                break;
            };
            match store.put(name.as_str(), said.clone()).await {
                Ok(revision) => {
                    self.revision = Some(revision);
                    return Kept::InBucket;
                }
                Err(error) => {
                    debug!(
                        error = causes(&error),
                        "the bucket did not take an announcement"
                    );
                    self.store = None;
                }
            }
        }
        let subject = subject::member(name);
        match self.client.publish(subject, said).await {
            Ok(()) => Kept::SaidOnly,
            Err(_) => Kept::Lost,
        }
    }

    /// Takes the worker's entry out, unless someone has put another since [`put`](Self::put).
    pub async fn clear(&mut self, name: &WorkerName) {
        if let (Some(store), Some(revision)) = (&self.store, self.revision) {
            // Who is there heard the leave before; this is for those who come later.
            let key = name.as_str();
            let _ = store.delete_expect_revision(key, Some(revision)).await;
        }
    }

    /// Passes everything that is kept on to `to`. Ends when all of it was, or when
    /// JetStream is silent. Says whether there is a bucket.
    pub async fn read(&mut self, to: &mpsc::Sender<(WorkerName, Bytes)>) -> bool {
        let Some(store) = self.store().await else {
            return false;
        };
        let Ok(Ok(mut entries)) = timeout(ANSWER_TIME, store.watch_with_history(">")).await else {
            self.store = None;
            return false;
        };
        while let Ok(Some(Ok(entry))) = timeout(ANSWER_TIME, entries.next()).await {
            let Entry {
                key,
                value,
                operation,
                delta,
                ..
            } = entry;
            let named = key.parse().ok().filter(|_| operation == Operation::Put);
            if let Some(name) = named
                && to.send((name, value)).await.is_err()
            {
                break;
            }
            if delta == 0 {
                break;
            }
        }
        true
    }

    /// Makes the bucket as the stream that it is: the call for buckets asks for more than
    /// servers before 2.10 answer.
    async fn make(&self) -> Result<Store, Error> {
        self.jetstream.create_stream(config()).await?;
        Ok(self.jetstream.get_key_value(subject::BUCKET).await?)
    }

    /// The bucket, which is made if it is not there.
    async fn store(&mut self) -> Option<Store> {
        let left_alone = self.failed.is_some_and(|at| at.elapsed() < LEFT_ALONE);
        if self.store.is_none() && !left_alone {
            let opened = match self.jetstream.get_key_value(subject::BUCKET).await {
                Ok(store) => Ok(store),
                Err(_) => self.make().await,
            };
            match opened {
                Ok(store) => {
                    if self.told {
                        info!("JetStream keeps the members");
                    }
                    (self.told, self.failed) = (false, None);
                    self.store = Some(store);
                }
                Err(error) => {
                    self.failed = Some(Instant::now());
                    if !self.told {
                        warn!(
                            why = %error,
                            "JetStream does not keep the members: it is off at this NATS server, \
                             or this user may not use it. Announcements are said and not kept, so \
                             frontends that come later wait for the next ones"
                        );
                    }
                    self.told = true;
                }
            }
        }
        self.store.clone()
    }
}

/// The stream that is the bucket. In memory: workers announce themselves anew within
/// seconds. What is older than any member may be silent goes by itself.
fn config() -> Config {
    Config {
        name: format!("KV_{}", subject::BUCKET),
        description: Some("Workers of Tidegate".to_owned()),
        subjects: vec![format!("$KV.{}.>", subject::BUCKET)],
        max_messages_per_subject: 1,
        max_age: LONGEST_TTL,
        storage: StorageType::Memory,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        num_replicas: 1,
        ..Config::default()
    }
}
