//! A worker whose every answer is written by the test, its pages apart: those it
//! answers by itself, as they are set.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::support::soon;
use super::wire::Wire;

/// What it says without being told to.
#[derive(Clone, Debug)]
pub struct Pages {
    /// The status of `/ready`.
    pub ready: u16,
    /// The body of `/v1/models`; `None` is 404.
    pub models: Option<String>,
    /// The body of `/metrics`; `None` is 404.
    pub metrics: Option<String>,
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            ready: 200,
            models: Some(r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#.to_owned()),
            metrics: None,
        }
    }
}

pub struct Scripted {
    pub addr: SocketAddr,
    pages: Arc<Mutex<Pages>>,
    calls: mpsc::UnboundedReceiver<Wire>,
    dead: CancellationToken,
}

impl Scripted {
    pub async fn start() -> Self {
        Self::with(Pages::default()).await
    }

    pub async fn with(pages: Pages) -> Self {
        Self::listen("127.0.0.1:0".parse().unwrap(), pages).await
    }

    /// The same where another one was before.
    pub async fn listen(addr: SocketAddr, pages: Pages) -> Self {
        let listener = TcpListener::bind(addr).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let pages = Arc::new(Mutex::new(pages));
        let (sender, calls) = mpsc::unbounded_channel();
        let dead = CancellationToken::new();
        let (said, ends) = (Arc::clone(&pages), dead.clone());
        tokio::spawn(async move {
            loop {
                let stream = tokio::select! {
                    accepted = listener.accept() => accepted.unwrap().0,
                    () = ends.cancelled() => return,
                };
                let (said, sender, ends) = (Arc::clone(&said), sender.clone(), ends.clone());
                tokio::spawn(async move {
                    ends.run_until_cancelled(serve(Wire::new(stream), said, sender))
                        .await;
                });
            }
        });
        Self {
            addr,
            pages,
            calls,
            dead,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Changes what it says from now on.
    pub fn set(&self, change: impl FnOnce(&mut Pages)) {
        change(&mut self.pages.lock().unwrap());
    }

    /// The next connection with a request on it that is not for a page, its head read.
    pub async fn call(&mut self) -> Wire {
        soon("a call to the worker", self.calls.recv())
            .await
            .unwrap()
    }

    /// Takes the next call, its body too, and answers it.
    pub async fn answer(&mut self, answer: &str) {
        let mut call = self.call().await;
        call.body().await;
        call.write(answer).await;
    }

    /// A call that has come, if one has.
    pub fn called(&mut self) -> Option<Wire> {
        self.calls.try_recv().ok()
    }

    /// Listens no more, and closes the connections that it has not handed out.
    pub fn kill(&self) {
        self.dead.cancel();
    }
}

/// Answers pages on one connection until a call comes, which goes to the test.
async fn serve(mut wire: Wire, pages: Arc<Mutex<Pages>>, calls: mpsc::UnboundedSender<Wire>) {
    while wire.try_head().await.is_some() {
        let path = wire.head.split(' ').nth(1).unwrap_or_default().to_owned();
        if !wire.head.starts_with("get ") {
            let _ = calls.send(wire);
            return;
        }
        let said = pages.lock().unwrap().clone();
        let answer = match path.as_str() {
            "/ready" | "/health" => page(said.ready, "{}"),
            "/v1/models" => match &said.models {
                Some(models) => page(200, models),
                None => page(404, "{}"),
            },
            "/metrics" => match &said.metrics {
                Some(metrics) => page(200, metrics),
                None => page(404, ""),
            },
            _ => page(404, "{}"),
        };
        if !wire.try_write(answer).await {
            return;
        }
    }
}

fn page(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
