//! What becomes of answers that nobody waits for, or that an engine cannot end.

use futures_util::StreamExt;
use http_body_util::BodyDataStream;
use tidegate_gateway::engine::batch::BatchConfig;
use tidegate_gateway::engine::{Engine, EngineConfig};

use super::support::*;

/// A client that leaves frees batch and cache, streaming, waiting or whole.
#[tokio::test]
async fn a_client_that_leaves_frees_what_it_held() {
    let config = EngineConfig {
        batch: BatchConfig {
            max_num_seqs: 2,
            ..BatchConfig::default()
        },
        ..EngineConfig::default()
    };
    // In real time, so that nothing ends by itself.
    let engine = Engine::start(config).await.unwrap();
    let path = "/v1/chat/completions";
    let streaming = soon(send(&engine, path, &[], chat(true, 50_000).to_string()))
        .await
        .unwrap();
    let mut stream = BodyDataStream::new(streaming.into_body());
    soon(stream.next()).await.unwrap().unwrap();
    let body = chat(false, 50_000).to_string();
    let mut whole = Box::pin(send(&engine, path, &[], body));
    tokio::select! {
        answer = &mut whole => panic!("answered {answer:?}"),
        () = until(|| engine.stats()[0].running == 2) => {}
    }
    let waiting = soon(send(&engine, path, &[], chat(true, 50_000).to_string()))
        .await
        .unwrap();
    until(|| engine.stats()[0].waiting == 1).await;
    assert_eq!(engine.stats()[0].running, 2);

    drop(waiting);
    until(|| engine.stats()[0].waiting == 0).await;
    drop(stream);
    until(|| engine.stats()[0].running == 1).await;
    drop(whole);
    until(|| engine.stats()[0].running == 0 && engine.stats()[0].kv_blocks_used == 0).await;
    assert_eq!(engine.stats()[0].cancelled, 3);
}

#[tokio::test]
async fn stopping_cuts_streams() {
    let engine = Engine::start(EngineConfig::default()).await.unwrap();
    let body = chat(true, 50_000).to_string();
    let answer = soon(send(&engine, "/v1/chat/completions", &[], body))
        .await
        .unwrap();
    soon(engine.shutdown()).await;
    let (text, _) = read(answer, false, |_| true).await;
    assert!(!text.contains("[DONE]"));
}
