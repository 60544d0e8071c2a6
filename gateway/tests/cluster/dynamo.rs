//! Load events as Dynamo's workers say them, from a publisher of their own on NATS to what
//! a client is answered.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_bytes::ByteBuf;
use serde_json::Value;

use super::nats::Nats;
use super::program::{Running, tidegate};
use super::support::{LONG, engine_with, page, until, value, within, worker_with};
use super::wire::Wire;

/// What Dynamo calls the worker: it uses all 64 bits.
const WORKER: u64 = 0xb3d6_94c1_7f05_2e88;

/// Where it says its loads now, and where it did before.
const SUBJECTS: [&str; 2] = [
    "namespace.dynamo.component.backend.endpoint.generate.kv_metrics",
    "namespace.dynamo.component.backend.kv_metrics",
];

/// What is around each of its events.
#[derive(Serialize)]
struct Envelope {
    topic: &'static str,
    publisher_id: u64,
    sequence: u64,
    published_at: u64,
    payload: ByteBuf,
    published_at_ns: u64,
}

#[derive(Clone, Copy, Serialize)]
struct ActiveLoad {
    worker_id: u64,
    dp_rank: u32,
    active_decode_blocks: Option<u64>,
    active_prefill_tokens: Option<u64>,
    kv_used_blocks: Option<u64>,
}

/// A rank of the worker that says nothing but its number.
fn of(dp_rank: u32) -> ActiveLoad {
    ActiveLoad {
        worker_id: WORKER,
        dp_rank,
        active_decode_blocks: None,
        active_prefill_tokens: None,
        kv_used_blocks: None,
    }
}

/// The publisher of one worker, which counts what it says.
struct Publisher {
    client: async_nats::Client,
    id: u64,
    sequence: u64,
}

impl Publisher {
    /// Says a load at `subject`, with the next number.
    async fn say(&mut self, subject: &str, load: ActiveLoad) {
        self.sequence += 1;
        self.say_as(self.sequence, subject, load).await;
    }

    async fn say_as(&self, sequence: u64, subject: &str, load: ActiveLoad) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let envelope = Envelope {
            topic: "kv_metrics",
            publisher_id: self.id,
            sequence,
            published_at: now.as_millis() as u64,
            payload: ByteBuf::from(rmp_serde::to_vec_named(&load).unwrap()),
            published_at_ns: now.as_nanos() as u64,
        };
        let bytes = rmp_serde::to_vec_named(&envelope).unwrap();
        self.raw(subject, bytes).await;
    }

    async fn raw(&self, subject: &str, bytes: Vec<u8>) {
        let said = self.client.publish(subject.to_owned(), bytes.into());
        said.await.unwrap();
        self.client.flush().await.unwrap();
    }
}

/// The program `tidegate frontend`, which hears Dynamo's events at both subjects.
struct Program {
    addr: SocketAddr,
    _running: Running,
}

impl Program {
    fn start(nats: &Nats) -> Self {
        let url = format!("nats://127.0.0.1:{}", nats.port);
        let mut arguments = vec!["frontend", "--listen", "127.0.0.1:0"];
        arguments.extend(["--log-format", "json", "--health-interval", "0.05"]);
        arguments.extend(["--nats", &url, "--allow-workers", "127.0.0.0/8"]);
        for subject in SUBJECTS {
            arguments.extend(["--dynamo-load-subject", subject]);
        }
        arguments.push("--no-scrape");
        arguments.extend(["--active-decode-blocks-threshold", "0.85"]);
        arguments.extend(["--active-prefill-tokens-threshold", "5000"]);
        arguments.extend(["--load-ttl", "4"]);
        let running = Running::spawn(tidegate(&arguments));
        let line: Value = serde_json::from_str(&running.wait_for("frontend listens")).unwrap();
        let addr = line["addr"].as_str().unwrap().parse().unwrap();
        Self {
            addr,
            _running: running,
        }
    }

    /// Status and body of a request's answer.
    async fn ask(&self) -> (u16, Value) {
        let body = r#"{"model":"sim","max_tokens":2,"messages":[{"role":"user","content":"x"}]}"#;
        let mut client = Wire::connect(self.addr).await;
        let head =
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json";
        let length = body.len();
        client
            .write(format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}"))
            .await;
        let status = client.head().await;
        let body = client.body().await;
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Waits until requests are answered so, for longer than a load counts, and gives
    /// the answer.
    async fn answers(&self, status: u16, what: &str) -> Value {
        let mut answer = Value::Null;
        within(2 * LONG, what, async || {
            let (got, body) = self.ask().await;
            answer = body;
            got == status
        })
        .await;
        answer
    }

    async fn counts(&self, series: &str) -> f64 {
        let page = page(&format!("http://{}", self.addr)).await;
        value(&page, &format!("dynamo_frontend_{series}"))
    }

    /// Waits until a series says so.
    async fn says(&self, series: &str, count: f64) {
        until(series, async || self.counts(series).await == count).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_dynamos_workers_say_makes_a_worker_busy_and_free_again() {
    let nats = Nats::start().await;
    let engine = engine_with(|config| {
        config.ranks = 2;
        config.batch.kv_blocks = 1000;
    })
    .await;
    let _worker = worker_with(&engine, nats.config(), "one", |config| {
        config.cluster.as_mut().unwrap().dynamo_worker_id = Some(WORKER);
    });
    let front = Program::start(&nats);
    front.answers(200, "an idle worker serves").await;
    let mut dynamo = Publisher {
        client: nats.client().await,
        id: 0x51_7cc1_b727_2202,
        sequence: 0,
    };
    let [now, before] = SUBJECTS;
    let full = |rank, blocks| ActiveLoad {
        active_decode_blocks: Some(blocks),
        ..of(rank)
    };
    let held = |rank, blocks| ActiveLoad {
        kv_used_blocks: Some(blocks),
        ..of(rank)
    };
    let over =
        "worker_ranks_over_threshold{worker_id=\"0\",threshold=\"active_decode_blocks_threshold\"}";

    // One of two ranks, and the other at the threshold and not over it.
    dynamo.say(now, full(0, 900)).await;
    dynamo.say(now, full(1, 850)).await;
    front.says(over, 1.0).await;
    assert_eq!(front.ask().await.0, 200);
    assert_eq!(front.counts("worker_active_decode_blocks{dp_rank=\"0\",worker_id=\"0\",worker_type=\"aggregated\"}").await, 900.0);

    // Both, by either count of blocks, wherever it is said.
    dynamo.say(before, held(1, 851)).await;
    front.says(over, 2.0).await;
    let body = front.answers(529, "every rank is over").await;
    assert_eq!(body["type"], "Overloaded");
    assert_eq!(body["message"], "Service temporarily overloaded");

    // What the worker says of itself takes nothing of it back.
    let load = "cluster_received_total{kind=\"load\"}";
    let said = front.counts(load).await;
    until("the worker says its own load", async || {
        front.counts(load).await > said
    })
    .await;
    front.says(over, 2.0).await;
    assert_eq!(front.ask().await.0, 529);

    // Nothing of this is a word of the worker's, or a new one.
    dynamo.say_as(1, now, full(0, 1)).await;
    front
        .says("cluster_dropped_total{reason=\"replayed\"}", 1.0)
        .await;
    let other = ActiveLoad {
        worker_id: 7,
        ..full(0, 1)
    };
    dynamo.say(now, other).await;
    front
        .says("cluster_dropped_total{reason=\"unknown_worker\"}", 1.0)
        .await;
    dynamo.raw(now, b"{\"worker_id\":1}".to_vec()).await;
    front
        .says("cluster_dropped_total{reason=\"unusable\"}", 1.0)
        .await;
    // Silence would make it free in time, which is not meant here.
    dynamo.say(now, full(0, 900)).await;
    dynamo.say(now, held(1, 900)).await;
    front.answers(529, "the worker is busy").await;

    // It says that it has room.
    dynamo.say(now, held(1, 100)).await;
    dynamo.say(now, full(1, 100)).await;
    front
        .answers(200, "a worker that has room again serves")
        .await;

    // Prompts that are not read yet count by themselves.
    let prompts = |rank, tokens| ActiveLoad {
        active_prefill_tokens: Some(tokens),
        ..full(rank, 0)
    };
    for rank in [0, 1] {
        dynamo.say(now, prompts(rank, 5001)).await;
    }
    front.answers(529, "too many tokens").await;
    // A publisher that was started anew counts from the beginning.
    (dynamo.id, dynamo.sequence) = (3, 0);
    dynamo.say(now, prompts(0, 5000)).await;
    front.answers(200, "as many tokens as may be").await;

    // What is old says nothing: nobody is refused because of silence.
    for rank in [0, 1] {
        dynamo.say(now, full(rank, 1000)).await;
    }
    front.answers(529, "full for the last time").await;
    front
        .answers(200, "nobody has said anything for long")
        .await;
}
