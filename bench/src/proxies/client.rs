//! Requests on connections that are kept.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::kind::Kind;

/// One connection; a new one when the server has closed it.
pub struct Client {
    to: SocketAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
    /// Connections made so far.
    pub connections: u64,
}

/// How an answer came.
pub struct Seen {
    /// From the request to the first byte of the answer's body.
    pub first: Duration,
    /// To its end.
    pub whole: Duration,
    /// The body.
    pub body: Vec<u8>,
}

impl Client {
    /// Connects at the first request.
    #[must_use]
    pub fn new(to: SocketAddr) -> Self {
        Self {
            to,
            sender: None,
            connections: 0,
        }
    }

    /// One request, read to its end.
    ///
    /// # Errors
    /// No connection, no answer, or another status than 200.
    pub async fn ask(&mut self, kind: Kind) -> Result<Seen> {
        let start = Instant::now();
        let request = Request::post("/v1/chat/completions")
            .header(HOST, self.to.to_string())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from_static(kind.body().as_bytes())))?;
        let sender = self.sender().await?;
        let answer = sender.send_request(request).await.context("no answer")?;
        let status = answer.status();
        let mut body = answer.into_body();
        let mut text = Vec::new();
        let mut first = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.context("an answer that breaks off")?;
            if let Some(data) = frame.data_ref() {
                first.get_or_insert_with(|| start.elapsed());
                text.extend_from_slice(data);
            }
        }
        let whole = start.elapsed();
        ensure!(status == StatusCode::OK, "status {status}");
        Ok(Seen {
            first: first.unwrap_or(whole),
            whole,
            body: text,
        })
    }

    async fn sender(&mut self) -> Result<&mut SendRequest<Full<Bytes>>> {
        let kept = match self.sender.take() {
            // It says whether the server has closed the connection meanwhile.
            Some(mut sender) => sender.ready().await.ok().map(|()| sender),
            None => None,
        };
        let sender = match kept {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        Ok(self.sender.insert(sender))
    }

    async fn connect(&mut self) -> Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.to).await.context("no connection")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        self.connections += 1;
        Ok(sender)
    }
}
