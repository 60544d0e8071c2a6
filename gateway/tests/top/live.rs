//! The screen of `tidegate top`, from its start to its end.

use std::net::TcpListener;
use std::process::Command;

use super::stack::{Stack, simulated};
use super::terminal::Terminal;

/// Both ends block: each on a thread of its own.
fn blocking<T>(call: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(call)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_follows_a_worker_and_says_how_old_what_it_shows_is_once_that_is_gone() {
    let stack = Stack::start(simulated(1, 4, 20.0), |_| {}).await;
    let url = stack.worker.url();
    let mut top = Terminal::start(100, 30, &["top", "--url", &url, "--interval", "0.05"]);
    blocking(|| {
        top.is_taken();
        let title = format!("tidegate top  {}", url.trim_start_matches("http://"));
        top.shows("whose it is, and an empty rank", |text| {
            text.starts_with(&title) && text.contains("..... 0/4")
        });
    });
    let held = stack.worker.gate().try_admit(Some(0)).unwrap();
    blocking(|| top.shows("one runs", |text| text.contains("##... 1/4")));
    drop(held);
    blocking(|| {
        top.shows("none runs", |text| !text.contains("1/4"));
        top.resize(40, 10);
        top.shows("the axes as text, in all columns", |text| {
            let few = text.contains("running 0/4  waiting 0/4");
            few && text.lines().next().unwrap().ends_with("q leaves") && !text.contains('#')
        });
        top.resize(100, 30);
        top.shows("the axes side by side", |text| {
            text.contains("Quality of service")
        });
    });
    drop(stack);
    blocking(|| {
        top.shows("that nobody answers, beside the last counts", |text| {
            text.contains("s old: ") && text.contains("no connection") && text.contains("0/4")
        });
        top.press("q");
        assert_eq!(top.left(), 0);
        assert_eq!(top.text(), "", "something stayed on the screen");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_keys_and_a_signal_end_it_and_no_other_key_does() {
    let stack = Stack::start(simulated(1, 4, 20.0), |_| {}).await;
    let url = stack.worker.url();
    blocking(|| {
        for leave in ["q", "\x1b", "\x03", "TERM"] {
            // The next look is far away: whoever leaves does not wait for it.
            let mut top = Terminal::start(80, 24, &["top", "--url", &url, "--interval", "600"]);
            top.is_taken();
            top.shows("a rank", |text| text.contains("0/4"));
            top.press("x \x1b[A\r");
            // Drawn by the thread that looks at keys, after them.
            top.resize(70, 24);
            top.shows("another width", |text| {
                text.lines().next().is_some_and(|line| line.len() == 70)
            });
            assert!(top.runs());
            match leave {
                "TERM" => {
                    let id = top.id().to_string();
                    let sent = Command::new("kill").args(["-TERM", &id]).status();
                    assert!(sent.expect("kill runs").success());
                }
                key => top.press(key),
            }
            assert_eq!(top.left(), 0, "{leave:?}");
        }
    });
}

#[test]
fn who_is_not_there_or_never_answers_is_said_and_can_be_left() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut top = Terminal::start(80, 24, &["top", "--url", &url]);
    top.shows("something before the answer", |text| {
        text.contains("Asking.")
    });
    top.shows("how long it took", |text| {
        text.contains("no answer within 2s")
    });
    drop(listener);
    top.shows("where nobody is, and what to do", |text| {
        let said = ["/metrics: no connection", "asked again", "--url", "demo"];
        said.iter().all(|said| text.contains(said))
    });
    top.press("q");
    assert_eq!(top.left(), 0);
}
