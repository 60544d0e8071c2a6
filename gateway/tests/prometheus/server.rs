//! A Prometheus server that scrapes workers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tidegate_gateway::scrape::page::{Fetch, PageError, PageUrl};
use tokio::time::{Instant, sleep};

use super::program::Running;
use super::stack::LONG;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/prometheus/install.sh");
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/prometheus");

/// One of Prometheus' programs, `prometheus` or `promtool`.
pub fn program(name: &str) -> PathBuf {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let output = Command::new("sh").args([SCRIPT, FOLDER]).output();
        let output = output.map_err(|error| format!("sh does not run: {error}"))?;
        let (out, err) = (&output.stdout, &output.stderr);
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(out).trim().into()),
            false => Err(String::from_utf8_lossy(err).into_owned()),
        }
    });
    match found {
        Ok(folder) => folder.join(name),
        Err(why) => panic!("there is no Prometheus: {why}"),
    }
}

/// A server with nothing stored yet, ended when dropped.
pub struct Prometheus {
    pub url: String,
    _running: Running,
    /// Goes after the server, which writes there.
    _folder: Folder,
}

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Prometheus {
    /// Starts one that scrapes these addresses ten times a second, and waits until
    /// it does, which takes it some seconds.
    pub async fn start(targets: &[SocketAddr]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let binary = program("prometheus");
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(FOLDER).join(format!("run-{}-{id}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let count = targets.len();
        let targets: Vec<String> = targets
            .iter()
            .map(|addr| format!("{:?}", addr.to_string()))
            .collect();
        let config = format!(
            "global: {{ scrape_interval: 100ms, scrape_timeout: 100ms }}\n\
             scrape_configs: [{{ job_name: workers, static_configs: [{{ targets: [{}] }}] }}]\n",
            targets.join(", ")
        );
        let file = folder.join("prometheus.yml");
        std::fs::write(&file, config).expect("a file");
        let mut command = Command::new(binary);
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("data").display()
            ))
            .args(["--web.listen-address=127.0.0.1:0"])
            .stdin(Stdio::null());
        let running = Running::spawn(command);
        let line = running.wait_for("msg=\"Listening on\"");
        let (_, addr) = line.rsplit_once("address=").expect("an address");
        let url = format!("http://{addr}");
        let server = Self {
            url,
            _running: running,
            _folder: Folder(folder),
        };
        let start = Instant::now();
        // At first it answers that it is not ready.
        while server.try_query("up == 1").await.map_or(0, |up| up.len()) < count {
            assert!(
                start.elapsed() < 6 * LONG,
                "it never scraped {count} workers"
            );
            sleep(Duration::from_millis(100)).await;
        }
        server
    }

    /// What it says to an instant query: labels and value of each series.
    pub async fn query(&self, query: &str) -> Vec<(Value, f64)> {
        self.try_query(query).await.expect("an answer")
    }

    async fn try_query(&self, query: &str) -> Result<Vec<(Value, f64)>, PageError> {
        let base: PageUrl = self.url.parse().expect("a URL");
        let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
        let page = base.below(&format!("/api/v1/query?query={query}"));
        let page = Fetch::new(page).expect("no certificates are needed");
        let answer: Value = serde_json::from_str(&page.text(LONG).await?).expect("JSON");
        let series = answer["data"]["result"].as_array().expect("a vector");
        let read = |one: &Value| {
            let value = one["value"][1].as_str().and_then(|text| text.parse().ok());
            (one["metric"].clone(), value.expect("a number"))
        };
        Ok(series.iter().map(read).collect())
    }
}
