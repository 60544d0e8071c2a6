//! A headless Chromium, driven over WebDriver.

use std::process::{Command, Stdio};
use std::time::Duration;

use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use url::{ParseError, Url};

use super::program::Running;
use super::stack::{LONG, soon};

/// One at a time: many that start at once, on a machine that has never started one,
/// keep each other from it.
static STARTING: Semaphore = Semaphore::const_new(1);

/// What the driver says when it has a port, and when it has none.
const STARTED: &str = "started successfully on port";
const TAKEN: &str = "port not available";

/// How long the first may take, none of it being in memory yet.
const FIRST_START: Duration = Duration::from_secs(60);

/// A browser with one window. Its driver, and all that it started, end when dropped.
pub struct Browser {
    pub client: Client,
    driver: Running,
}

/// A command that only Chromium's driver knows.
#[derive(Debug)]
struct Own(&'static str, Value);

impl WebDriverCompatibleCommand for Own {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!(
            "session/{}/{}",
            session.unwrap_or_default(),
            self.0
        ))
    }

    fn method_and_body(&self, _: &Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.1.to_string()))
    }
}

impl Browser {
    /// Starts one, of this width and height.
    pub async fn start(width: u32, height: u32) -> Self {
        assert!(
            Command::new("chromedriver")
                .arg("--version")
                .output()
                .is_ok(),
            "there is no browser: install Debian's packages chromium and chromium-driver"
        );
        let turn = STARTING.acquire().await.expect("it is never closed");
        // It looks for a port that is free in IPv4 and in IPv6, and gives up where somebody
        // was quicker in one of them.
        let (driver, line) = loop {
            let mut command = Command::new("chromedriver");
            command.arg("--port=0").stdin(Stdio::null());
            let driver = Running::spawn(command);
            let line = driver.wait_long_for(&[STARTED, TAKEN], FIRST_START);
            if line.contains(STARTED) {
                break (driver, line);
            }
        };
        let port = line
            .trim_end_matches('.')
            .rsplit(' ')
            .next()
            .expect("a port");
        let capabilities = json!({
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": { "args": [
                "headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu",
                "hide-scrollbars", format!("window-size={width},{height}"),
            ] },
        });
        let Value::Object(capabilities) = capabilities else {
            unreachable!("an object");
        };
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap_or_else(|error| panic!("Chromium does not start: {error}: {}", driver.all()));
        drop(turn);
        let browser = Self { client, driver };
        // A window may not be as narrow as a phone; what a page sees may.
        browser.size(width, height).await;
        browser
    }

    /// What pages see of the screen from now on.
    pub async fn size(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", size)
            .await;
    }

    /// What the reader prefers from now on: `light` or `dark`.
    pub async fn prefers(&self, scheme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    /// A command of the DevTools protocol.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        let answer = self.client.issue_cmd(Own("goog/cdp/execute", body)).await;
        answer.expect("the driver answers")
    }

    /// What the console has said since the last time, debug messages apart.
    pub async fn console(&self) -> Vec<String> {
        let log = self
            .client
            .issue_cmd(Own("se/log", json!({ "type": "browser" })))
            .await;
        let log = log.expect("the driver answers");
        let lines = log.as_array().expect("a list").iter();
        lines.map(|line| line["message"].to_string()).collect()
    }

    /// What a script says, which ends in `return`.
    pub async fn script(&self, script: &str) -> Value {
        let said = self.client.execute(script, Vec::new()).await;
        said.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Opens a page.
    pub async fn open(&self, url: &str) {
        soon("a page", self.client.goto(url)).await.expect("a page");
    }

    /// Asks again and again until a script's answer is as it should be.
    pub async fn until(&self, what: &str, script: &str, reached: impl Fn(&Value) -> bool) -> Value {
        let start = tokio::time::Instant::now();
        loop {
            let said = self.script(script).await;
            if reached(&said) {
                return said;
            }
            assert!(start.elapsed() < LONG * 2, "never {what}: {said}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// Ends it, which dropping alone leaves to the driver's end.
    pub async fn close(self) {
        let _ = self.client.close().await;
        drop(self.driver);
    }
}
