//! `tidegate worker` as a process of its own: what it takes from its environment,
//! what it logs, and how it ends.

mod deciding;
mod ending;
mod https;
#[path = "../program/mod.rs"]
mod program;
mod surroundings;

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use program::{Running, tidegate};

/// A worker before `engine`, on a free port. `prepare` changes the command.
pub fn worker(
    engine: &str,
    flags: &[&str],
    prepare: impl FnOnce(&mut std::process::Command),
) -> (Running, SocketAddr) {
    let mut arguments = vec!["worker", "--engine-url", engine, "--listen", "127.0.0.1:0"];
    arguments.extend(["--log-format", "json"]);
    arguments.extend(flags);
    let mut command = tidegate(&arguments);
    prepare(&mut command);
    let worker = Running::spawn(command);
    let line = worker.wait_for("worker listens");
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let addr = line["addr"].as_str().expect("an address");
    let addr = addr.parse().expect("an address");
    (worker, addr)
}

/// A request to a gated route.
pub async fn ask(addr: SocketAddr, headers: &[(&str, &str)]) -> Response<Incoming> {
    let mut request = Request::post(format!("http://{addr}/generate"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from_static(b"{}"))).unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    client.request(request).await.expect("an answer")
}
