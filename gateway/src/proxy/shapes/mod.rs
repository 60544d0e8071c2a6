//! What one event of an engine's stream says: a token, the end, or neither.
//!
//! Known shapes: OpenAI chat, completions and responses; Anthropic messages;
//! llama.cpp `/completion`; TGI; SGLang `/generate`; KServe and Triton; Dynamo's
//! engine output, bare or annotated. Anything else that is not empty counts as a token, since
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
const FLAT: [&str; 9] = [
    "text",
    "content",
    "reasoning_content",
    "generated_text",
    "text_output",
    "token_ids",
    "output_ids",
    "tokens",
    "outputs",
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
mod tests;
