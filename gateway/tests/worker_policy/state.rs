//! The engine's state: fresh, stale, and what follows from it.

use tidegate_policy::file;
use tidegate_policy::shadow::Mode;

use super::support::*;
use super::{Office, POLICY};

#[tokio::test]
async fn without_a_state_the_gate_alone_decides_and_that_is_visible() {
    let mut office = Office::start(limits(1, 1, 1)).await;
    let (_client, mut call) = office.bench.streaming().await;
    let mut held = office.post("gold").await;
    office.held("gold", 1).await;

    office.page.fails();
    office.until("policy_state_fresh", "", 0.0).await;
    // Who was held is now in the gate's own queue, and a third is refused by it.
    office.held("gold", 0).await;
    office.bench.holds(1, 0, 1).await;
    let mut third = office.post("gold").await;
    assert_eq!(third.head().await, 529);
    assert_eq!(third.header("x-admission-scope"), Some("worker"));
    assert!(office.metric("policy_state_age_seconds", "").await.unwrap() > 0.4);

    office.page.says(0.0);
    office.until("policy_state_fresh", "", 1.0).await;
    call.write(chunk("data: [DONE]\n\n")).await;
    office.bench.engine.answer(JSON).await;
    assert_eq!(held.head().await, 200);
    held.body().await;
    office.bench.idle().await;
    office.until("policy_inside_count", "", 0.0).await;
}

#[tokio::test]
async fn a_page_of_nonsense_is_no_state() {
    let office = Office::start(limits(1, 1, 1)).await;
    for nonsense in ["", "<html>", "vllm:num_requests_running NaN\u{0}", "up 1\n"] {
        office.page.says(0.5);
        office.until("policy_state_fresh", "", 1.0).await;
        office.page.set(Some(nonsense.to_owned()));
        office.until("policy_state_fresh", "", 0.0).await;
    }
}

#[tokio::test]
async fn to_observe_is_to_count_and_to_change_nothing() {
    let mut office = Office::with(limits(1, 1, 1), |_, policy| policy.mode = Mode::Observe).await;
    office.page.says(0.99);
    office.until("policy_gpu_share", "of=memory", 0.99).await;
    assert_eq!(office.metric("policy_observes", "").await, Some(1.0));
    let mut bronze = office.post("bronze").await;
    office.bench.engine.answer(JSON).await;
    assert_eq!(bronze.head().await, 200);
    bronze.body().await;
    let shed = office
        .decided("bronze", "refused", "noncritical_shed")
        .await;
    assert_eq!(shed, Some(1.0));
    assert_eq!(office.metric("engine_request_limit", "").await, Some(1.0));
    let _running = office.bench.streaming().await;
    let _queued = office.bench.post().await;
    office.bench.holds(1, 0, 1).await;
}

#[tokio::test]
async fn the_target_is_the_limit_in_force_while_the_state_is_fresh() {
    let office = Office::with(limits(8, 8, 8), |_, policy| {
        let text = POLICY.replace("utilisation_target = 1.0", "utilisation_target = 0.5");
        policy.settings = file::parse(&text).unwrap();
    })
    .await;
    office.until("engine_request_limit", "", 4.0).await;
    office.page.fails();
    office.until("engine_request_limit", "", 8.0).await;
}

#[tokio::test]
async fn quality_and_the_other_axes_are_shown_by_class() {
    let mut office = Office::start(limits(2, 2, 2)).await;
    let mut client = office.post("gold").await;
    office.bench.engine.answer(JSON).await;
    assert_eq!(client.head().await, 200);
    client.body().await;
    office.until("policy_attainment", "class=gold", 1.0).await;
    let goodput = office.metric("policy_goodput", "class=gold").await;
    assert!(goodput.unwrap() > 0.0);
    let first = "class=gold,quantile=0.99";
    let first = office.metric("policy_first_token_seconds", first).await;
    assert!((0.0..5.0).contains(&first.unwrap()));
    let none = office.metric("policy_attainment", "class=silver").await;
    assert!(none.unwrap().is_nan(), "nothing has ended");
}
