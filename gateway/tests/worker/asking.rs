//! A client over HTTP/1.1 or HTTP/2, whose requests are cancelled by dropping them.

use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::future::Either;
use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use super::support::soon;

/// The versions that the worker speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    /// A connection for each request.
    One,
    /// All requests of a client on one connection.
    Two,
}

impl Http {
    pub const BOTH: [Self; 2] = [Self::One, Self::Two];

    pub async fn client(self, addr: SocketAddr) -> Client {
        let two = match self {
            Self::One => None,
            Self::Two => {
                let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(1 << 16)
                    .handshake(stream(addr).await)
                    .await
                    .unwrap();
                Some((
                    sender,
                    AbortOnDropHandle::new(tokio::spawn(async {
                        let _ = connection.await;
                    })),
                ))
            }
        };
        Client { addr, two }
    }
}

async fn stream(addr: SocketAddr) -> TokioIo<TcpStream> {
    TokioIo::new(TcpStream::connect(addr).await.unwrap())
}

type Sender = http2::SendRequest<Full<Bytes>>;

/// Who asks.
pub struct Client {
    addr: SocketAddr,
    two: Option<(Sender, AbortOnDropHandle<()>)>,
}

impl Client {
    /// Sends a request with a small body.
    pub async fn ask(&self, path: &str, headers: &[(&str, &str)]) -> Asked {
        self.ask_with(path, headers, "{}").await
    }

    pub async fn ask_with(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Asked {
        let mut request = http::Request::post(format!("http://worker{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request
            .body(Full::new(Bytes::from(body.to_owned())))
            .unwrap();
        let (answer, connection) = match &self.two {
            Some((sender, _)) => (Either::Left(sender.clone().send_request(request)), None),
            None => {
                *request.uri_mut() = path.parse().unwrap();
                let host = http::HeaderValue::from_static("worker");
                request.headers_mut().insert("host", host);
                let io = stream(self.addr).await;
                let (mut sender, connection) = http1::handshake(io).await.unwrap();
                let connection = AbortOnDropHandle::new(tokio::spawn(async {
                    let _ = connection.await;
                }));
                (
                    Either::Right(sender.send_request(request)),
                    Some(connection),
                )
            }
        };
        Asked {
            pending: Some(AbortOnDropHandle::new(tokio::spawn(answer))),
            answer: None,
            read: String::new(),
            _connection: connection,
        }
    }
}

type Answer = Response<Incoming>;

/// A request under way. Dropping it is leaving.
pub struct Asked {
    pending: Option<AbortOnDropHandle<hyper::Result<Answer>>>,
    answer: Option<Answer>,
    read: String,
    _connection: Option<AbortOnDropHandle<()>>,
}

impl Asked {
    /// The status, once the head has come.
    pub async fn status(&mut self) -> u16 {
        if let Some(pending) = self.pending.take() {
            let answer = soon("an answer", pending).await.unwrap();
            self.answer = Some(answer.expect("an answer"));
        }
        self.answer.as_ref().unwrap().status().as_u16()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let headers = self.answer.as_ref().unwrap().headers();
        headers.get(name).map(|value| value.to_str().unwrap())
    }

    async fn more(&mut self) -> Option<hyper::Result<()>> {
        let frame = self.answer.as_mut().unwrap().frame().await?;
        Some(frame.map(|frame| {
            if let Ok(data) = frame.into_data() {
                self.read.push_str(&String::from_utf8_lossy(&data));
            }
        }))
    }

    /// Reads until `text` has come.
    pub async fn until(&mut self, text: &str) {
        soon(text, async {
            while !self.read.contains(text) {
                self.more().await.expect("more").expect("no failure");
            }
        })
        .await;
    }

    /// Everything, and whether it came to its end.
    pub async fn whole(&mut self) -> (String, bool) {
        let whole = soon("the end of the body", async {
            while let Some(read) = self.more().await {
                if read.is_err() {
                    return false;
                }
            }
            true
        })
        .await;
        (std::mem::take(&mut self.read), whole)
    }
}
