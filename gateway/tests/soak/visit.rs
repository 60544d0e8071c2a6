//! One client's visit, which may end anywhere.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::tally::Tally;

const MISBEHAVIOUR: [&str; 12] = [
    "never-answer",
    "stall",
    "stall-mid",
    "reset",
    "reset-mid",
    "truncated",
    "error-event",
    "empty-stream",
    "role-only",
    "bad-json",
    "http-400",
    "http-500",
];

/// What is asked for.
struct Wish {
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Wish {
    fn random(rng: &mut StdRng) -> Self {
        let mut headers = Vec::new();
        if rng.random_bool(0.4) {
            let how = MISBEHAVIOUR.choose(rng).copied().unwrap_or_default();
            headers.push(("x-sim-misbehave", how.to_owned()));
        }
        if rng.random_bool(0.5) {
            let rank = ["0", "1", "7", "x"].choose(rng).copied().unwrap_or("0");
            headers.push(("x-data-parallel-rank", rank.to_owned()));
        }
        if rng.random_bool(0.3) {
            headers.push(("x-admission-progress", "1".to_owned()));
        }
        let padding = "x".repeat(rng.random_range(0..20_000));
        let body = serde_json::json!({
            "stream": rng.random_bool(0.7),
            "max_tokens": rng.random_range(1..200),
            "ignore_eos": true,
            "messages": [{"role": "user", "content": padding}],
        });
        Self {
            headers,
            body: body.to_string(),
        }
    }
}

/// A visit of any kind.
pub async fn random(addr: SocketAddr, rng: &mut StdRng, tally: &Tally) {
    let patience = Duration::from_millis(rng.random_range(0..1500));
    if rng.random_bool(0.3) {
        together(addr, rng, patience, tally).await;
    } else {
        alone(addr, rng, patience, tally).await;
    }
}

/// A request that is sent whole and answered, for as long as that takes.
pub async fn plain(addr: SocketAddr) -> Option<u16> {
    let body = r#"{"max_tokens":1,"messages":[{"role":"user","content":"a"}]}"#;
    let wish = Wish {
        headers: Vec::new(),
        body: body.to_owned(),
    };
    let mut stream = TcpStream::connect(addr).await.ok()?;
    stream.write_all(text(&wish).as_bytes()).await.ok()?;
    let mut read = Vec::new();
    let all = stream.read_to_end(&mut read);
    timeout(Duration::from_secs(5), all).await.ok()?.ok()?;
    status(&read)
}

fn text(wish: &Wish) -> String {
    let headers: String = wish
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/json\r\n{headers}content-length: {}\r\n\r\n{}",
        wish.body.len(),
        wish.body
    )
}

fn status(read: &[u8]) -> Option<u16> {
    std::str::from_utf8(read.get(9..12)?).ok()?.parse().ok()
}

/// Over HTTP/1.1, byte by byte: the request may stop anywhere, and so may the
/// reading of its answer.
async fn alone(addr: SocketAddr, rng: &mut StdRng, patience: Duration, tally: &Tally) {
    let Ok(mut stream) = TcpStream::connect(addr).await else {
        return tally.lost();
    };
    let text = text(&Wish::random(rng));
    let sent = match rng.random_range(0..4) {
        0 => rng.random_range(0..text.len()),
        _ => text.len(),
    };
    let pause = Duration::from_millis(rng.random_range(0..20));
    let (head, rest) = text.as_bytes()[..sent].split_at(sent / 2);
    let mut read = Vec::new();
    let reads = rng.random_bool(0.9);
    let _ = timeout(patience, async {
        stream.write_all(head).await?;
        sleep(pause).await;
        stream.write_all(rest).await?;
        if !reads {
            sleep(patience).await;
        }
        while stream.read_buf(&mut read).await? > 0 {}
        Ok::<_, std::io::Error>(())
    })
    .await;
    tally.ended(status(&read));
    if rng.random_bool(0.5) {
        #[allow(deprecated)] // tokio's replacement is not in the version in use
        let _ = stream.set_linger(Some(Duration::ZERO));
    }
}

/// Over HTTP/2: several at once on one connection, each leaving when it likes; the
/// connection goes with the last.
async fn together(addr: SocketAddr, rng: &mut StdRng, patience: Duration, tally: &Tally) {
    let Ok(stream) = TcpStream::connect(addr).await else {
        return tally.lost();
    };
    let io = TokioIo::new(stream);
    let Ok((sender, connection)) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await
    else {
        return tally.lost();
    };
    let connection = tokio::spawn(connection);
    let asked = (0..rng.random_range(1..5)).map(|_| {
        let wish = Wish::random(rng);
        let mut request = http::Request::post("http://worker/v1/chat/completions");
        for (name, value) in &wish.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(Bytes::from(wish.body)));
        let request = request.expect("a request");
        let mut sender = sender.clone();
        let leaves = patience.mul_f64(rng.random_range(0.1..1.0));
        async move {
            let mut status = None;
            let _ = timeout(leaves, async {
                let answer = sender.send_request(request).await.ok()?;
                status = Some(answer.status().as_u16());
                answer.into_body().collect().await.ok()
            })
            .await;
            tally.ended(status);
        }
    });
    let asked: Vec<_> = asked.collect();
    futures_util::future::join_all(asked).await;
    connection.abort();
}
