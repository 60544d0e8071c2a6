//! What one event of an engine's stream says: a token, the end, or neither.
//!
//! Known shapes: OpenAI chat, completions and responses; Anthropic messages;
//! llama.cpp `/completion`; TGI; SGLang `/generate`; Dynamo's engine output,
//! bare or annotated. Anything else that is not empty counts as a token, since
//! holding the waiting limit too long does more harm than ending it early.

use serde_json::{Map, Value};

use super::sse::SseEvent;

/// What an event says about the request that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// No token yet: a role, a keep-alive, usage, an annotation.
    Nothing,
    /// Generated content, or the reason why there is no more of it.
    Generated,
    /// The engine is done with this request.
    Ends,
}

use Meaning::{Ends, Generated, Nothing};

fn generated(yes: bool) -> Meaning {
    if yes { Generated } else { Nothing }
}

/// Members that say which kind of thing their object is, and carry no content.
const LABELS: [&str; 3] = ["role", "type", "index"];

/// Where engines that do not speak OpenAI's or Anthropic's shapes put content.
const FLAT: [&str; 8] = [
    "text",
    "content",
    "reasoning_content",
    "generated_text",
    "text_output",
    "token_ids",
    "output_ids",
    "tokens",
];

/// Whether a block could end a request, by its look: cheap, and never wrong
/// with a "no".
pub(crate) fn may_end(block: &str) -> bool {
    ["error", "[DONE]", "message_stop", "response."]
        .iter()
        .any(|sign| block.contains(sign))
}

/// What `event` says.
pub(crate) fn meaning(event: &SseEvent) -> Meaning {
    let data = event.data.trim();
    match (event.name.as_str(), data) {
        ("error", _) => Ends,
        (_, "[DONE]") => Ends,
        (_, "") => Nothing,
        _ => match serde_json::from_str(data) {
            Ok(Value::Object(members)) => object(&members),
            Ok(Value::Null) => Nothing,
            Ok(_) | Err(_) => Generated,
        },
    }
}

fn object(members: &Map<String, Value>) -> Meaning {
    if members.get("error").is_some_and(is_set) || is(members, "object", "error") {
        return Ends;
    }
    if let Some(choices) = members.get("choices") {
        return match choices.as_array() {
            Some(choices) => generated(choices.iter().any(choice)),
            None => Generated,
        };
    }
    if let Some(kind) = members.get("type").and_then(Value::as_str) {
        return typed(kind, members);
    }
    if let Some(inside) = annotated(members) {
        return inside;
    }
    flat(members)
}

/// One of OpenAI's choices: chat has `delta` (or `message`), completions `text`.
fn choice(choice: &Value) -> bool {
    const PLACES: [&str; 4] = ["delta", "message", "text", "token_ids"];
    let Some(members) = choice.as_object() else {
        return true;
    };
    let known = members.contains_key("finish_reason")
        || PLACES.iter().any(|place| members.contains_key(*place));
    if !known {
        return carries(choice);
    }
    members.get("finish_reason").is_some_and(is_set)
        || PLACES
            .iter()
            .any(|place| members.get(*place).is_some_and(carries))
}

/// Events that name their own kind: Anthropic's messages, OpenAI's responses.
fn typed(kind: &str, members: &Map<String, Value>) -> Meaning {
    let inner = |outer: &str, name: &str| members.get(outer).and_then(|value| value.get(name));
    let filled = |outer: &str, name: &str| inner(outer, name).is_some_and(carries);
    match kind {
        "error" | "message_stop" => Ends,
        "response.completed" | "response.failed" | "response.incomplete" => Ends,
        "ping" | "content_block_stop" => Nothing,
        "response.created" | "response.queued" | "response.in_progress" => Nothing,
        "message_start" => generated(filled("message", "content")),
        "content_block_start" => generated(members.get("content_block").is_some_and(carries)),
        "message_delta" => generated(inner("delta", "stop_reason").is_some_and(is_set)),
        "response.output_item.added" => {
            match inner("item", "type").and_then(Value::as_str) {
                // Announced empty; a tool call is announced with its name.
                Some("message" | "reasoning") => {
                    generated(filled("item", "content") || filled("item", "summary"))
                }
                _ => Generated,
            }
        }
        "response.content_part.added" | "response.reasoning_summary_part.added" => {
            generated(filled("part", "text"))
        }
        _ if kind == "content_block_delta" || kind.ends_with(".delta") => {
            generated(members.get("delta").is_none_or(carries))
        }
        _ => Generated,
    }
}

/// An annotated item: the engine's own output in `data`, beside an id, an event
/// name and comments. `None` if this is not one.
fn annotated(members: &Map<String, Value>) -> Option<Meaning> {
    let only_these = members
        .keys()
        .all(|name| matches!(name.as_str(), "data" | "id" | "event" | "comment" | "error"));
    let any_of_these = ["data", "event", "comment"]
        .iter()
        .any(|name| members.contains_key(*name));
    if !only_these || !any_of_these {
        return None;
    }
    if is(members, "event", "error") {
        return Some(Ends);
    }
    Some(match members.get("data") {
        None | Some(Value::Null) => Nothing,
        Some(Value::Object(inside)) => object(inside),
        Some(other) => generated(carries(other)),
    })
}

/// Content, or why it ended, at the top level.
fn flat(members: &Map<String, Value>) -> Meaning {
    let get = |name: &str| members.get(name);
    let meta = get("meta_info").and_then(|meta| meta.get("finish_reason"));
    let reasons = [get("finish_reason"), get("stop_reason"), get("token"), meta];
    if reasons.into_iter().flatten().any(is_set)
        || get("stop").is_some_and(|stop| stop == &Value::Bool(true))
        || FLAT.iter().any(|name| get(name).is_some_and(carries))
    {
        return Generated;
    }
    let known = FLAT.iter().any(|name| members.contains_key(*name))
        || ["finish_reason", "stop", "token", "meta_info", "usage"]
            .iter()
            .any(|name| members.contains_key(*name));
    generated(!known && !members.is_empty())
}

fn is(members: &Map<String, Value>, name: &str, text: &str) -> bool {
    members.get(name).and_then(Value::as_str) == Some(text)
}

/// Neither `null` nor an empty string.
fn is_set(value: &Value) -> bool {
    !value.is_null() && value.as_str() != Some("")
}

/// Whether there is any text or token id in `value`. Labels, flags and single
/// numbers are not content.
fn carries(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => items.iter().any(|item| item.is_number() || carries(item)),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| !LABELS.contains(&name.as_str()) && carries(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(name: &str, data: &str) -> Meaning {
        meaning(&SseEvent {
            name: name.to_owned(),
            data: data.to_owned(),
        })
    }

    #[track_caller]
    fn each(expected: Meaning, events: &[&str]) {
        for data in events {
            assert_eq!(says("message", data), expected, "{data}");
        }
    }

    #[test]
    fn roles_keep_alives_usage_and_empty_deltas_are_no_tokens() {
        each(
            Nothing,
            &[
                "",
                "  ",
                "null",
                "{}",
                r#"{"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}"#,
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":[1,2]}"#,
                r#"{"choices":[{"delta":{"content":null,"reasoning_content":null,"tool_calls":[]}}]}"#,
                r#"{"choices":[{"delta":{"content":[{"type":"text","text":""}]}}]}"#,
                r#"{"choices":[{"index":0,"text":"","finish_reason":null}],"usage":null}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":3,"total_tokens":3}}"#,
                r#"{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}"#,
                r#"{"usage":{"prompt_tokens":3}}"#,
                r#"{"choices":[],"error":null}"#,
            ],
        );
    }

    #[test]
    fn text_reasoning_tool_calls_token_ids_and_finish_reasons_are() {
        each(
            Generated,
            &[
                r#"{"choices":[{"delta":{"content":"a"}}]}"#,
                r#"{"choices":[{"delta":{"content":" "}}]}"#,
                r#"{"choices":[{"delta":{"reasoning_content":"a"}}]}"#,
                r#"{"choices":[{"delta":{"reasoning":"a"}}]}"#,
                r#"{"choices":[{"delta":{"refusal":"a"}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
                r#"{"choices":[{"delta":{"content":""}},{"delta":{"content":"second"}}]}"#,
                r#"{"choices":[{"text":"a"}]}"#,
                r#"{"choices":[{"text":"","token_ids":[0]}]}"#,
            ],
        );
    }

    #[test]
    fn unknown_shapes_count_unless_they_are_empty() {
        each(
            Generated,
            &[
                "hello",
                "7",
                "[]",
                "{not json",
                r#"{"what":"ever"}"#,
                r#"{"choices":3}"#,
            ],
        );
    }

    #[test]
    fn done_and_errors_end() {
        each(
            Ends,
            &[
                "[DONE]",
                " [DONE] ",
                r#"{"error":{"message":"out of memory"}}"#,
                r#"{"error":"Input validation","error_type":"validation"}"#,
                r#"{"object":"error","message":"bad","code":400}"#,
                r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
            ],
        );
        assert_eq!(says("error", ""), Ends);
        assert_eq!(says("error", "boom"), Ends);
    }

    #[test]
    fn anthropic_messages() {
        each(
            Nothing,
            &[
                r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":9}}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                r#"{"type":"ping"}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}"#,
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":null}}"#,
            ],
        );
        each(
            Generated,
            &[
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            ],
        );
        each(Ends, &[r#"{"type":"message_stop"}"#]);
    }

    #[test]
    fn openai_responses() {
        each(
            Nothing,
            &[
                r#"{"type":"response.created","response":{"id":"r","status":"in_progress","output":[],"error":null}}"#,
                r#"{"type":"response.in_progress","response":{"id":"r"}}"#,
                r#"{"type":"response.output_item.added","item":{"type":"message","id":"m","role":"assistant","content":[]}}"#,
                r#"{"type":"response.content_part.added","part":{"type":"output_text","text":""}}"#,
                r#"{"type":"response.output_text.delta","delta":""}"#,
            ],
        );
        each(
            Generated,
            &[
                r#"{"type":"response.output_text.delta","delta":"Hi"}"#,
                r#"{"type":"response.reasoning_text.delta","delta":"Hm"}"#,
                r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#,
                r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"f","arguments":""}}"#,
                r#"{"type":"response.output_text.done","text":"Hi"}"#,
            ],
        );
        each(
            Ends,
            &[
                r#"{"type":"response.completed","response":{}}"#,
                r#"{"type":"response.failed"}"#,
            ],
        );
    }

    #[test]
    fn llama_cpp_tgi_sglang_and_triton() {
        each(
            Nothing,
            &[
                r#"{"index":0,"content":"","tokens":[],"stop":false,"id_slot":0}"#,
                r#"{"text":"","output_ids":[],"meta_info":{"id":"x","finish_reason":null}}"#,
                r#"{"token":null,"generated_text":null}"#,
                r#"{"model_name":"m","text_output":""}"#,
            ],
        );
        each(
            Generated,
            &[
                r#"{"index":0,"content":"a","stop":false}"#,
                r#"{"content":"","stop":true}"#,
                r#"{"index":1,"token":{"id":42,"text":"","logprob":-0.1,"special":true},"generated_text":null}"#,
                r#"{"text":"a","meta_info":{"finish_reason":null}}"#,
                r#"{"text":"","output_ids":[5],"meta_info":{}}"#,
                r#"{"text":"","meta_info":{"finish_reason":{"type":"length","length":8}}}"#,
                r#"{"model_name":"m","text_output":"a"}"#,
            ],
        );
    }

    #[test]
    fn engine_output_bare_and_annotated() {
        each(
            Nothing,
            &[
                r#"{"token_ids":[],"tokens":null,"text":null,"finish_reason":null}"#,
                r#"{"data":null,"id":null,"event":"metadata","comment":["x"]}"#,
                r#"{"data":{"token_ids":[],"finish_reason":null}}"#,
            ],
        );
        each(
            Generated,
            &[
                r#"{"token_ids":[7],"text":null}"#,
                r#"{"token_ids":[],"finish_reason":"length"}"#,
                r#"{"data":{"token_ids":[7]},"event":null}"#,
            ],
        );
        each(
            Ends,
            &[r#"{"data":null,"event":"error","comment":["boom"]}"#],
        );
    }

    #[test]
    fn whatever_ends_looks_like_it() {
        for block in [
            "data: [DONE]\n",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n",
            "data: {\"error\":\"x\"}\n",
            "event: error\n: x\n",
            "data: {\"type\":\"response.completed\"}\n",
        ] {
            assert!(may_end(block), "{block}");
            assert_eq!(meaning(&SseEvent::parse(block)), Ends, "{block}");
        }
        assert!(!may_end(
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n"
        ));
    }

    #[test]
    fn deep_nesting_is_unknown_rather_than_fatal() {
        each(Generated, &[&"[".repeat(100_000)]);
    }
}
