//! An engine's metrics page, under vLLM's names, as the test wants it.

use std::sync::{Arc, Mutex};

use tidegate_gateway::scrape::page::PageUrl;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The page. Its engine has a cache of 16,000 tokens.
pub struct Page {
    pub url: PageUrl,
    text: Arc<Mutex<Option<String>>>,
}

impl Page {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        let text = Arc::new(Mutex::new(None));
        let page = Self {
            url: url.parse().unwrap(),
            text: Arc::clone(&text),
        };
        page.says(0.0);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let text = Arc::clone(&text);
                tokio::spawn(async move {
                    let mut head = [0; 4096];
                    let _ = stream.read(&mut head).await;
                    let text: Option<String> = text.lock().unwrap().clone();
                    let (status, text) = match text {
                        Some(text) => ("200 OK", text),
                        None => ("500 Broken", String::new()),
                    };
                    let answer = format!(
                        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                        text.len()
                    );
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        page
    }

    /// This share of the cache is in use.
    pub fn says(&self, share: f64) {
        self.set(Some(format!(
            "vllm:num_requests_running 1\n\
             vllm:num_requests_waiting 0\n\
             vllm:kv_cache_usage_perc {share}\n\
             vllm:cache_config_info{{block_size=\"16\",num_gpu_blocks=\"1000\"}} 1\n"
        )));
    }

    /// It breaks.
    pub fn fails(&self) {
        self.set(None);
    }

    pub fn set(&self, text: Option<String>) {
        *self.text.lock().unwrap() = text;
    }
}
