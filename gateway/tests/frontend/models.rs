//! Which models there are, and who gets requests for them.

use serde_json::{Value, json};

use super::support::*;

fn listing(names: &[&str]) -> Pages {
    let data: Vec<Value> = names
        .iter()
        .map(|name| json!({"id": name, "object": "model", "max_model_len": 4096}))
        .collect();
    Pages {
        models: Some(json!({ "data": data }).to_string()),
        ..Pages::default()
    }
}

fn unlisted() -> Pages {
    Pages {
        models: None,
        ..Pages::default()
    }
}

fn naming(model: &str) -> String {
    post_of(&json!({ "model": model }).to_string(), "")
}

#[tokio::test]
async fn requests_go_to_those_that_list_their_model() {
    let mut both = Scripted::with(listing(&["a", "b"])).await;
    let mut one = Scripted::with(listing(&["b", "org/c"])).await;
    let front = Front::start(&[&both, &one]).await;
    for _ in 0..3 {
        let mut client = front.send(naming("a")).await;
        both.answer(JSON).await;
        assert_eq!(client.head().await, 200);
        let mut client = front.send(naming("org/c")).await;
        one.answer(JSON).await;
        assert_eq!(client.head().await, 200);
    }
    let (status, page) = front.get("/v1/models").await;
    let page: Value = serde_json::from_str(&page).unwrap();
    let names: Vec<&str> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!((status, names), (200, vec!["a", "b", "org/c"]));
    // What the worker says of it is passed on.
    let (status, model) = front.get("/v1/models/org/c").await;
    let model: Value = serde_json::from_str(&model).unwrap();
    assert_eq!((status, &model["max_model_len"]), (200, &json!(4096)));
    assert_eq!(front.get("/v1/models/d").await.0, 404);

    let mut client = front.send(naming("d")).await;
    let (status, body) = answer(&mut client).await;
    assert_eq!(status, 404);
    assert_eq!(body["error"]["code"], "model_not_found");
    assert_eq!(body["error"]["param"], "model");
}

#[tokio::test]
async fn what_nobody_lists_goes_to_those_that_list_nothing() {
    let mut lists = Scripted::with(listing(&["a"])).await;
    let mut other = Scripted::with(unlisted()).await;
    let front = Front::start(&[&lists, &other]).await;
    let mut client = front.send(naming("whatever")).await;
    other.answer(JSON).await;
    assert_eq!(client.head().await, 200);
    for _ in 0..2 {
        let mut client = front.send(naming("a")).await;
        lists.answer(JSON).await;
        assert_eq!(client.head().await, 200);
    }
    // It has no name here, so that nobody can make one up.
    let name = |model: &str| {
        format!(
            "dynamo_frontend_requests_total{{model=\"{model}\",endpoint=\"chat_completions\",outcome=\"ok\"}}"
        )
    };
    front.measures(&name("unknown"), 1.0).await;
    front.measures(&name("a"), 2.0).await;
    assert_eq!(front.metric(&name("whatever")).await, None);
}

#[tokio::test]
async fn a_model_whose_workers_are_gone_is_unavailable_and_not_unknown() {
    let one = Scripted::with(listing(&["a"])).await;
    let mut other = Scripted::with(listing(&["b"])).await;
    let front = Front::start(&[&one, &other]).await;
    one.kill();
    front.well(1).await;
    let mut client = front.send(naming("a")).await;
    assert_unavailable(&mut client).await;
    let mut client = front.send(naming("b")).await;
    other.answer(JSON).await;
    assert_eq!(client.head().await, 200);
}

#[tokio::test]
async fn a_worker_that_comes_back_is_asked_anew_what_it_serves() {
    let one = Scripted::with(listing(&["a"])).await;
    let front = Front::start(&[&one]).await;
    let addr = one.addr;
    one.kill();
    front.well(0).await;
    let mut again = None;
    until("the port is free", async || {
        again = match std::net::TcpListener::bind(addr) {
            Ok(listener) => {
                drop(listener);
                Some(Scripted::listen(addr, listing(&["b"])).await)
            }
            Err(_) => None,
        };
        again.is_some()
    })
    .await;
    let mut again = again.unwrap();
    front.well(1).await;
    let mut client = front.send(naming("a")).await;
    assert_eq!(client.head().await, 404);
    let mut client = front.send(naming("b")).await;
    again.answer(JSON).await;
    assert_eq!(client.head().await, 200);
}

#[tokio::test]
async fn a_request_without_a_model_is_for_the_only_one() {
    let mut one = Scripted::with(listing(&["a"])).await;
    let front = Front::start(&[&one]).await;
    let mut client = front.send(post_of("{}", "")).await;
    one.answer(JSON).await;
    assert_eq!(client.head().await, 200);

    let mut two = Scripted::with(listing(&["a", "b"])).await;
    let front = Front::start(&[&two]).await;
    let mut client = front.send(post_of("{}", "")).await;
    let (status, body) = answer(&mut client).await;
    assert_eq!(
        (status, body["error"]["code"].as_str()),
        (400, Some("missing_model"))
    );
    // Engines' own calls need none.
    let mut client = front
        .send(post_of(r#"{"inputs":"x"}"#, "").replace("/v1/chat/completions", "/generate"))
        .await;
    two.answer(JSON).await;
    assert_eq!(client.head().await, 200);
}

#[tokio::test]
async fn a_model_in_the_path_counts_and_its_body_may_be_anything() {
    let mut one = Scripted::with(listing(&["a"])).await;
    let mut other = Scripted::with(listing(&["resnet/50"])).await;
    let front = Front::start(&[&one, &other]).await;
    for _ in 0..2 {
        let mut client = front
            .send(
                "POST /v2/models/resnet%2F50/infer HTTP/1.1\r\nhost: x\r\n\
                 content-type: application/octet-stream\r\ncontent-length: 3\r\n\r\n\x00\x01\x02",
            )
            .await;
        let mut call = other.call().await;
        assert!(call.head.contains("/v2/models/resnet%2f50/infer"));
        assert_eq!(call.body().await, b"\x00\x01\x02");
        call.write(JSON).await;
        assert_eq!(client.head().await, 200);
    }
    assert!(one.called().is_none());
}
