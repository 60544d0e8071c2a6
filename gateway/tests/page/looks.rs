//! Whether the page can be read: by eye in either light, on a phone, by keyboard,
//! and by a screen reader.

use serde_json::{Value, json};
use tidegate_gateway::frontend::{Frontend, FrontendConfig};
use tidegate_gateway::policy::PolicyConfig;

use super::browser::Browser;
use super::stack::{Stack, simulated};

/// Texts whose contrast with what is behind them is under 4.5 to 1, WCAG's AA.
const PALE: &str = r"
const parse = text => text.match(/[\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
const behind = node => {
    for (; node; node = node.parentElement) {
        const color = parse(getComputedStyle(node).backgroundColor);
        if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
};
const texts = [...document.querySelectorAll('body *')].filter(node =>
    [...node.childNodes].some(child => child.nodeType == 3 && child.data.trim())
    && node.getClientRects().length);
return [texts.length, texts.map(node => {
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))];
    return [node.textContent, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
}).filter(([, contrast]) => contrast < 4.5)];";

/// A frontend before a worker whose policy has something to tell, each of its tables shown.
async fn shown(browser: &Browser) -> (Stack, Frontend) {
    let stack = Stack::start(simulated(2, 4, 20.0), |config| {
        let settings = tidegate_policy::file::parse(tidegate_policy::file::DEFAULT).unwrap();
        config.policy = Some(PolicyConfig::new(settings));
    })
    .await;
    let url = stack.worker.url();
    let front = Frontend::start(FrontendConfig::new(vec![url.parse().unwrap()])).unwrap();
    browser.open(&front.url()).await;
    let tables = "return [...document.querySelectorAll('.table')].map(table => table.id)";
    let start = tokio::time::Instant::now();
    loop {
        // The policy decides about these, and the frontend, which so has something to tell.
        let _ = super::routes::ask(&front.url()).await;
        let seen = browser.script(tables).await;
        if seen.as_array().is_some_and(|seen| seen.len() >= 4) {
            return (stack, front);
        }
        assert!(start.elapsed() < super::stack::LONG * 2, "{seen}");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn it_can_be_read_in_either_light_and_on_a_phone_and_a_desk() {
    let browser = Browser::start(1280, 900).await;
    let _shown = shown(&browser).await;
    let mut backs = Vec::new();
    for scheme in ["light", "dark"] {
        browser.prefers(scheme).await;
        for (width, height) in [
            (360, 740),
            (412, 915),
            (768, 1024),
            (1280, 900),
            (1920, 1080),
        ] {
            browser.size(width, height).await;
            let seen = browser.script(PALE).await;
            assert!(seen[0].as_u64() > Some(50), "{seen}");
            assert_eq!(seen[1], json!([]), "pale at {width}, {scheme}");
            let wide = "return [document.documentElement.scrollWidth, innerWidth]";
            let wide = browser.script(wide).await;
            assert_eq!(wide[0], json!(width), "{scheme}: {wide}");
            assert_eq!(wide[1], json!(width));
            // And nothing is cut off within.
            let cut = "return [...document.querySelectorAll('body *')].filter(node => {
                const box = node.getBoundingClientRect();
                return box.width && box.right > innerWidth + 1; }).map(node => node.outerHTML.slice(0, 200))";
            assert_eq!(browser.script(cut).await, json!([]), "{width}");
        }
        backs.push(
            browser
                .script("return getComputedStyle(document.body).backgroundColor")
                .await,
        );
    }
    assert_ne!(backs[0], backs[1]);
    browser.close().await;
}

#[tokio::test]
async fn a_screen_reader_finds_names_and_roles() {
    let browser = Browser::start(400, 900).await;
    let _shown = shown(&browser).await;
    assert_eq!(
        browser.script("return document.documentElement.lang").await,
        "en"
    );
    browser.devtools("Accessibility.enable", json!({})).await;
    let tree = browser
        .devtools("Accessibility.getFullAXTree", json!({}))
        .await;
    let nodes: Vec<(String, String)> = tree["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .filter(|node| node["ignored"] != Value::Bool(true))
        .map(|node| {
            let text = |of: &str| node[of]["value"].as_str().unwrap_or_default().to_owned();
            (text("role"), text("name"))
        })
        .collect();
    let named = |role: &str| -> Vec<&str> {
        let of = nodes.iter().filter(|(its, _)| its == role);
        of.map(|(_, name)| name.as_str()).collect()
    };
    for (role, count) in [
        ("main", 1),
        ("banner", 1),
        ("contentinfo", 1),
        ("status", 1),
    ] {
        assert_eq!(named(role).len(), count, "{role}: {nodes:?}");
    }
    assert!(
        named("heading")
            .iter()
            .any(|name| name.starts_with("Tidegate"))
    );
    for axis in [
        "GPU saturation",
        "Concurrency saturation",
        "Quality of service",
    ] {
        assert!(named("heading").contains(&axis), "{axis}");
    }
    // Each chart says in words what it draws; the tables are tables on a phone, too.
    let charts = named("image");
    assert_eq!(charts.len(), 3, "{charts:?}");
    assert!(
        charts
            .iter()
            .all(|name| name.contains("now") && name.contains("at most")),
        "{charts:?}"
    );
    let tables = named("table");
    assert!(tables.len() >= 4, "{tables:?}");
    for role in ["table", "link", "region"] {
        assert!(
            named(role).iter().all(|name| !name.is_empty()),
            "{role} without a name"
        );
    }
    assert!(named("columnheader").contains(&"Queued"));
    assert!(!named("rowheader").is_empty() && !named("cell").is_empty());
    browser.close().await;
}

#[tokio::test]
async fn a_keyboard_is_enough() {
    let browser = Browser::start(1000, 700).await;
    let _shown = shown(&browser).await;
    let focus = "return document.activeElement.textContent";
    let press = async |key: &str, code: u32| {
        for kind in ["rawKeyDown", "char", "keyUp"] {
            let text = if key == "Enter" { "\r" } else { "" };
            let mut event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            if kind == "char" {
                event["text"] = text.into();
            }
            if kind != "char" || !text.is_empty() {
                browser.devtools("Input.dispatchKeyEvent", event).await;
            }
        }
    };
    press("Tab", 9).await;
    assert_eq!(browser.script(focus).await, "Skip to the figures");
    press("Enter", 13).await;
    browser
        .until("jumps", "return document.activeElement.id", |id| {
            *id == "main"
        })
        .await;
    press("Tab", 9).await;
    let link = browser.script(focus).await;
    assert!(link.as_str().unwrap().starts_with("0: http://"), "{link}");
    // It keeps the focus when the figures change.
    tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
    assert_eq!(browser.script(focus).await, link);
    let ring = "return getComputedStyle(document.activeElement).outlineWidth";
    assert_eq!(browser.script(ring).await, "3px");
    browser.close().await;
}
