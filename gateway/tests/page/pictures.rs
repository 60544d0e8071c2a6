//! The README's pictures of the page, taken anew when `TIDEGATE_PICTURES` names the
//! folder for them.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::browser::Browser;
use super::program::Running;

#[tokio::test]
async fn the_page_under_load() {
    let Some(folder) = std::env::var_os("TIDEGATE_PICTURES").map(PathBuf::from) else {
        eprintln!("not asked for: set TIDEGATE_PICTURES, or run .ci/pictures");
        return;
    };
    let mut demo = Running::start(&["demo", "--rate", "24"]);
    let line = demo.wait_for("Watch it in a browser:");
    let url = line.split_whitespace().last().unwrap().to_owned();
    let browser = Browser::start(1180, 1400).await;
    browser.open(&url).await;
    // A minute of it in the charts, and a moment in which something is refused.
    tokio::time::sleep(Duration::from_secs(62)).await;
    let refuses = "return parseFloat(document.querySelector('#concurrency-legend .bad').textContent.match(/[\\d.]+/)) > 1";
    // Each ends below a section, so that nothing is cut.
    for (name, scheme, width, last) in [
        ("page-light", "light", 1180, "#refusals"),
        ("page-dark", "dark", 1180, "#refusals"),
        ("page-phone", "light", 390, ".axes"),
    ] {
        browser.prefers(scheme).await;
        browser.size(width, 1400).await;
        let start = tokio::time::Instant::now();
        while browser.script(refuses).await != Value::Bool(true)
            && start.elapsed() < Duration::from_secs(30)
        {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let end = format!(
            "return Math.ceil(document.querySelector('{last}').getBoundingClientRect().bottom) + 8"
        );
        let height = browser.script(&end).await.as_u64().unwrap();
        browser.size(width, u32::try_from(height).unwrap()).await;
        let png = browser.client.screenshot().await.unwrap();
        std::fs::write(folder.join(format!("{name}.png")), png).unwrap();
    }
    browser.close().await;
    demo.stop("-INT");
}
