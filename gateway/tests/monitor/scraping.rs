//! Pages read over real sockets, of servers that misbehave in many ways.

use std::time::Duration;

use tidegate_gateway::monitor::{Joining, Monitor, MonitorSettings, Thresholds};
use tidegate_gateway::scrape::page::PageUrl;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use crate::stack::LONG;

/// Scrapes twenty times a second; what is read counts for a minute.
pub fn often(thresholds: Thresholds) -> Monitor {
    Monitor::new(MonitorSettings {
        thresholds,
        scrape_interval: Some(Duration::from_millis(50)),
        load_ttl: Duration::from_secs(60),
        ..MonitorSettings::default()
    })
}

pub fn joining(url: &str) -> Joining {
    let page = PageUrl::of(url.parse().expect("a URL"), "/metrics");
    Joining {
        page: Some(page),
        models: ["sim".to_owned()].into(),
        ..Joining::new(1)
    }
}

pub async fn until(what: &str, reached: impl Fn() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < LONG, "never: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// A server whose pages the test writes; `None` closes the connection unanswered. It
/// says how often it was asked.
struct Scripted {
    url: String,
    page: tokio::sync::watch::Sender<Option<String>>,
    asked: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl Scripted {
    async fn start(first: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (page, pages) = tokio::sync::watch::channel(first.map(str::to_owned));
        let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = std::sync::Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let page = pages.borrow().clone();
                tokio::spawn(async move { answer(&mut stream, page).await });
            }
        });
        Self { url, page, asked }
    }

    fn says(&self, page: Option<&str>) {
        self.page.send_replace(page.map(str::to_owned));
    }

    fn asked(&self) -> usize {
        self.asked.load(std::sync::atomic::Ordering::Relaxed)
    }
}

async fn answer(stream: &mut TcpStream, page: Option<String>) {
    let mut head = [0; 4096];
    let _ = stream.read(&mut head).await;
    if let Some(page) = page {
        let length = page.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(page.as_bytes()).await;
    }
}

fn usage(share: f64) -> String {
    format!(
        "vllm:cache_config_info{{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"100\"}} 1\n\
         vllm:kv_cache_usage_perc{{engine=\"0\"}} {share}\n\
         vllm:num_requests_waiting{{engine=\"0\"}} {}\n",
        if share > 0.5 { 3 } else { 0 }
    )
}

pub fn blocks(share: f64) -> Thresholds {
    Thresholds {
        active_decode_blocks: Some(share),
        ..Thresholds::default()
    }
}

fn dropped(monitor: &Monitor) -> u64 {
    monitor.snapshot()[0].dropped
}

fn failed(monitor: &Monitor) -> u64 {
    monitor.snapshot()[0].failed_scrapes
}

#[tokio::test]
async fn a_page_makes_busy_and_frees() {
    let server = Scripted::start(Some(&usage(0.9))).await;
    let monitor = often(blocks(0.85));
    let member = monitor.add(joining(&server.url)).unwrap();
    until("busy", || member.busy("sim").worker).await;
    let refused = Instant::now();
    assert_eq!(member.load().ranks[0].active_decode_blocks, 90);
    assert_eq!(member.last_free(), None, "three wait");
    server.says(Some(&usage(0.85)));
    until("free", || !member.busy("sim").worker).await;
    server.says(Some(&usage(0.1)));
    until("room", || member.last_free() > Some(refused)).await;
}

#[tokio::test]
async fn a_server_that_dies_frees_its_worker_by_and_by() {
    let server = Scripted::start(Some(&usage(0.9))).await;
    let monitor = Monitor::new(MonitorSettings {
        thresholds: blocks(0.85),
        scrape_interval: Some(Duration::from_millis(20)),
        load_ttl: Duration::from_millis(500),
        ..MonitorSettings::default()
    });
    let member = monitor.add(joining(&server.url)).unwrap();
    until("busy", || member.busy("sim").worker).await;
    server.says(None);
    until("free", || !member.busy("sim").worker).await;
    assert!(failed(&monitor) > 0);
    assert!(monitor.snapshot()[0].is_stale());
    server.says(Some(&usage(0.95)));
    until("busy again", || member.busy("sim").worker).await;
    assert!(!monitor.snapshot()[0].is_stale());
}

#[tokio::test]
async fn garbage_is_counted_and_the_rest_is_read() {
    let garbage = include_str!("pages/garbage.txt");
    let server = Scripted::start(Some(garbage)).await;
    let monitor = often(blocks(0.85));
    let member = monitor.add(joining(&server.url)).unwrap();
    until("dropped", || dropped(&monitor) >= 11).await;
    assert_eq!(member.load().ranks[0].active_decode_blocks, 500);
    assert!(!member.busy("sim").worker);
    // Far more than a page may have: not read at all, and nothing it said goes.
    server.says(Some(&"x 1\n".repeat(2 << 20)));
    until("a failure", || failed(&monitor) > 0).await;
    assert_eq!(member.load().ranks[0].active_decode_blocks, 500);
}

#[tokio::test]
async fn one_that_fails_is_asked_less_and_less() {
    let server = Scripted::start(None).await;
    let monitor = Monitor::new(MonitorSettings {
        scrape_interval: Some(Duration::from_millis(10)),
        ..MonitorSettings::default()
    });
    let _member = monitor.add(joining(&server.url)).unwrap();
    until("six failures", || failed(&monitor) >= 6).await;
    // 10 ms, doubled six times, is 640 ms; a tenth less may be drawn.
    let (asked, then) = (server.asked(), Instant::now());
    until("another", || failed(&monitor) >= 7).await;
    assert!(
        then.elapsed() >= Duration::from_millis(250),
        "{:?}",
        then.elapsed()
    );
    assert!(server.asked() <= asked + 2);
}

#[tokio::test]
async fn one_that_is_removed_is_asked_no_more() {
    let server = Scripted::start(Some(&usage(0.1))).await;
    let monitor = often(Thresholds::default());
    let _member = monitor.add(joining(&server.url)).unwrap();
    until("asked", || server.asked() > 2).await;
    monitor.remove(1);
    sleep(Duration::from_millis(100)).await;
    let asked = server.asked();
    sleep(Duration::from_millis(300)).await;
    assert_eq!(server.asked(), asked);
    // So is everyone when the monitor goes.
    let _member = monitor.add(joining(&server.url)).unwrap();
    until("asked", || server.asked() > asked + 2).await;
    drop(monitor);
    sleep(Duration::from_millis(100)).await;
    let asked = server.asked();
    sleep(Duration::from_millis(300)).await;
    assert_eq!(server.asked(), asked);
}
