//! Requests to a worker, each on a connection of its own, that end when dropped.

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyDataStream, BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::stack::{Stack, soon};

const CHAT: &str = "/v1/chat/completions";

/// So many tokens that no answer ends by itself while a test runs.
pub const ENDLESS: u32 = 50_000;

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Properly.
    Whole,
    /// Before its end.
    Cut,
}

/// A chat that gets exactly so many tokens.
pub fn chat(stream: bool, tokens: u32) -> Value {
    json!({"stream": stream, "max_tokens": tokens, "ignore_eos": true,
           "messages": [{"role": "user", "content": "How high is the tide?"}]})
}

fn request(url: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Request<Full<Bytes>> {
    let mut request = Request::post(format!("{url}{path}"))
        .header("host", "worker")
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Full::new(Bytes::from(body.to_string()));
    request.body(body).expect("a request")
}

/// Who sends them.
#[derive(Clone)]
pub struct Caller {
    url: String,
}

impl Caller {
    pub fn new(stack: &Stack) -> Self {
        Self {
            url: stack.worker.url(),
        }
    }

    /// Sends one and waits for the head of the answer.
    pub async fn send_to(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Response<Incoming> {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let sent = client.request(request(&self.url, path, headers, &body));
        soon("an answer", sent).await.expect("an answer")
    }

    pub async fn send(&self, headers: &[(&str, &str)], body: Value) -> Response<Incoming> {
        self.send_to(CHAT, headers, body).await
    }

    /// The same, for a task, and without a limit on the time.
    pub async fn send_owned(self, body: Value) -> Response<Incoming> {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let sent = client.request(request(&self.url, CHAT, &[], &body));
        sent.await.expect("an answer")
    }

    /// An endless stream whose first event has come.
    pub async fn stream(&self) -> Response<Incoming> {
        let mut answer = self.send(&[], chat(true, ENDLESS)).await;
        assert_eq!(answer.status(), StatusCode::OK);
        next(&mut answer).await;
        answer
    }
}

/// The next piece of a body.
pub async fn next(answer: &mut Response<Incoming>) -> String {
    let frame = soon("a piece of the body", answer.frame()).await;
    let data = frame.expect("no end").expect("no failure").into_data();
    String::from_utf8_lossy(&data.expect("no trailers")).into_owned()
}

/// A body's text, and how it ended.
pub async fn read(answer: Response<Incoming>) -> (String, End) {
    let mut text = String::new();
    let mut pieces = BodyDataStream::new(answer.into_body());
    let reading = async {
        while let Some(piece) = pieces.next().await {
            match piece {
                Ok(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => return End::Cut,
            }
        }
        End::Whole
    };
    let end = soon("the end of the body", reading).await;
    (text, end)
}

/// A connection that is kept.
pub struct Connection(SendRequest<Full<Bytes>>);

pub async fn connect(stack: &Stack) -> Connection {
    let stream = TcpStream::connect(stack.worker.addr()).await;
    let stream = TokioIo::new(stream.expect("a connection"));
    let (sender, connection) = handshake(stream).await.expect("HTTP/1.1");
    // It ends when the sender is dropped.
    tokio::spawn(connection);
    Connection(sender)
}

impl Connection {
    /// Sends one request and reads the whole answer.
    pub async fn send(&mut self, body: Value) -> (StatusCode, End) {
        soon("a free connection", self.0.ready())
            .await
            .expect("a connection");
        let sent = self.0.send_request(request("", CHAT, &[], &body));
        let answer = soon("an answer", sent).await.expect("an answer");
        let status = answer.status();
        (status, read(answer).await.1)
    }
}
