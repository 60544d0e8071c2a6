//! An engine behind TLS.

use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::{ask, worker};

/// Answers every request with `mine`, on a connection each, and gives the
/// certificate as PEM.
async fn engine() -> (SocketAddr, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // One that does not trust the certificate ends here.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut read = Vec::new();
            while !read.windows(4).any(|end| end == b"\r\n\r\n") {
                if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            let said = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\nmine";
            let _ = stream.write_all(said.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (addr, made.cert.pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_behind_tls_is_reached_if_its_certificate_is_trusted() {
    let (engine, certificate) = engine().await;
    let file = std::env::temp_dir().join(format!("tidegate-{}.pem", std::process::id()));
    std::fs::write(&file, certificate).unwrap();
    let url = format!("https://localhost:{}", engine.port());
    let flags = ["--max-num-seqs", "1"];

    let (_worker, addr) = worker(&url, &flags, |command| {
        command.env("SSL_CERT_FILE", &file);
    });
    let answer = ask(addr, &[]).await;
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "mine");

    // Another name is another machine.
    let url = format!("https://127.0.0.1:{}", engine.port());
    let (worker, addr) = worker(&url, &flags, |command| {
        command.env("SSL_CERT_FILE", &file);
    });
    assert_eq!(ask(addr, &[]).await.status(), 502);
    let why = worker.wait_for("no answer from the engine");
    assert!(why.to_lowercase().contains("certificate"), "{why}");
    std::fs::remove_file(&file).unwrap();
}
