//! One end of an HTTP/1.1 connection, byte by byte.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::support::soon;

/// One end of a connection: what was read is kept until it is asked for.
pub struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
    /// The last head read, lower case.
    pub head: String,
}

impl Wire {
    pub fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            read: Vec::new(),
            head: String::new(),
        }
    }

    pub async fn connect(addr: SocketAddr) -> Self {
        Self::new(TcpStream::connect(addr).await.unwrap())
    }

    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// The same, to an end that may have closed: whether it took the bytes.
    pub async fn try_write(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Reads more; `false` once the other end has closed or reset.
    async fn more(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.read).await, Ok(read) if read > 0)
    }

    pub async fn try_head(&mut self) -> Option<()> {
        let end = loop {
            if let Some(at) = find(&self.read, b"\r\n\r\n") {
                break at + 4;
            }
            if !self.more().await {
                return None;
            }
        };
        let head: Vec<u8> = self.read.drain(..end).collect();
        self.head = String::from_utf8(head).unwrap().to_lowercase();
        Some(())
    }

    /// Reads a head; the status, if it is a response's.
    pub async fn head(&mut self) -> u16 {
        soon("a head", self.try_head())
            .await
            .expect("a head, not the end");
        let status = self.head.split(' ').nth(1).unwrap_or_default();
        status.parse().unwrap_or_default()
    }

    /// A header of the last head.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (this, value) = line.split_once(':')?;
            (this == name).then(|| value.trim())
        })
    }

    /// Reads exactly this, or fails.
    pub async fn expect(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        soon("the expected bytes", async {
            while self.read.len() < bytes.len() && self.more().await {}
        })
        .await;
        let got = &self.read[..bytes.len().min(self.read.len())];
        assert_eq!(String::from_utf8_lossy(got), String::from_utf8_lossy(bytes),);
        self.read.drain(..bytes.len());
    }

    /// Reads the body that the last head announces, and gives it decoded.
    pub async fn body(&mut self) -> Vec<u8> {
        if let Some(len) = self.header("content-length") {
            let len: usize = len.parse().unwrap();
            soon("a body", async {
                while self.read.len() < len {
                    assert!(self.more().await, "the body broke off");
                }
            })
            .await;
            return self.read.drain(..len).collect();
        }
        if self.header("transfer-encoding") != Some("chunked") {
            return Vec::new();
        }
        let mut body = Vec::new();
        loop {
            let piece = soon("a chunk", self.chunk()).await;
            if piece.is_empty() {
                return body;
            }
            body.extend(piece);
        }
    }

    async fn chunk(&mut self) -> Vec<u8> {
        loop {
            if let Some(at) = find(&self.read, b"\r\n") {
                let size = std::str::from_utf8(&self.read[..at]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                let end = at + 2 + size + 2;
                if self.read.len() >= end {
                    let piece: Vec<u8> = self.read.drain(..end).collect();
                    return piece[at + 2..end - 2].to_vec();
                }
            }
            assert!(self.more().await, "the chunked body broke off");
        }
    }

    /// The other end closes or resets, whatever it sends before.
    pub async fn closed(&mut self) {
        soon("the end of the connection", async {
            while self.more().await {}
        })
        .await;
    }

    /// Nothing more has come within a moment.
    pub async fn is_silent(&mut self) -> bool {
        let came = timeout(Duration::from_millis(50), self.more()).await;
        self.read.is_empty() && came.is_err()
    }

    /// Nothing is left unread.
    pub fn has_nothing_left(&self) -> bool {
        self.read.is_empty()
    }

    /// Ends what this end sends; it still reads.
    pub async fn end(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Ends with a reset instead of an orderly close.
    pub fn reset(self) {
        #[allow(deprecated)] // tokio's replacement is not in the version in use
        let _ = self.stream.set_linger(Some(Duration::ZERO));
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
