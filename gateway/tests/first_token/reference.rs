//! First tokens and ends of a stream, found the slow and obvious way: read the
//! whole body again from its first byte, line by line, and look each event up.

use serde_json::Value;

/// The furthest that a stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Told {
    Nothing,
    FirstToken,
    End,
}

use Told::{End, FirstToken, Nothing};

/// What single events say, in every dialect.
pub const TABLE: [(&str, Told); 38] = [
    // OpenAI: chat, completions
    (r#"{"choices":[{"delta":{"role":"assistant"}}]}"#, Nothing),
    (
        r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
        Nothing,
    ),
    (
        r#"{"choices":[{"delta":{"content":null,"tool_calls":[]}}]}"#,
        Nothing,
    ),
    (r#"{"choices":[],"usage":{"total_tokens":3}}"#, Nothing),
    (
        r#"{"choices":[{"delta":{"content":"an error, [DONE]"}}]}"#,
        FirstToken,
    ),
    (
        r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
        FirstToken,
    ),
    (
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"a"}]}}]}"#,
        FirstToken,
    ),
    (
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        FirstToken,
    ),
    (r#"{"choices":[{"text":"","finish_reason":null}]}"#, Nothing),
    (
        r#"{"choices":[{"text":"a","finish_reason":null}]}"#,
        FirstToken,
    ),
    (r#"{"error":{"message":"boom"}}"#, End),
    // OpenAI: responses
    (
        r#"{"type":"response.created","response":{"output":[]}}"#,
        Nothing,
    ),
    (
        r#"{"type":"response.output_text.delta","delta":""}"#,
        Nothing,
    ),
    (
        r#"{"type":"response.output_text.delta","delta":"a"}"#,
        FirstToken,
    ),
    (
        r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#,
        FirstToken,
    ),
    (r#"{"type":"response.completed","response":{}}"#, End),
    (r#"{"type":"response.failed","response":{}}"#, End),
    // Anthropic
    (
        r#"{"type":"message_start","message":{"content":[]}}"#,
        Nothing,
    ),
    (
        r#"{"type":"content_block_start","content_block":{"type":"text","text":""}}"#,
        Nothing,
    ),
    (r#"{"type":"ping"}"#, Nothing),
    (
        r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#,
        FirstToken,
    ),
    (
        r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"a"}}"#,
        FirstToken,
    ),
    (
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        FirstToken,
    ),
    (r#"{"type":"message_stop"}"#, End),
    (
        r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
        End,
    ),
    // llama.cpp
    (r#"{"content":"","tokens":[],"stop":false}"#, Nothing),
    (r#"{"content":"a","tokens":[3],"stop":false}"#, FirstToken),
    (r#"{"content":"","stop":true}"#, FirstToken),
    // TGI
    (
        r#"{"token":{"id":4,"text":"a"},"generated_text":null}"#,
        FirstToken,
    ),
    (r#"{"error":"bad","error_type":"validation"}"#, End),
    // SGLang
    (
        r#"{"text":"","output_ids":[],"meta_info":{"finish_reason":null}}"#,
        Nothing,
    ),
    (
        r#"{"text":"a","meta_info":{"finish_reason":null}}"#,
        FirstToken,
    ),
    (r#"{"text":"","output_ids":[7],"meta_info":{}}"#, FirstToken),
    // KServe and Triton
    (r#"{"model_name":"m","text_output":""}"#, Nothing),
    (r#"{"model_name":"m","text_output":"a"}"#, FirstToken),
    // Anyone
    (r#"{"token_ids":[0]}"#, FirstToken),
    ("[DONE]", End),
    ("what is this", FirstToken),
];

/// What a stream that began with `body` has told. `None` if it has an event on
/// which this has no opinion: JSON that is not in the table.
pub fn told(body: &[u8]) -> Option<Told> {
    let mut furthest = Nothing;
    for (name, data) in events(body) {
        match says(&name, data.trim())? {
            End => return Some(End),
            more => furthest = furthest.max(more),
        }
    }
    Some(furthest)
}

fn says(name: &str, data: &str) -> Option<Told> {
    if name == "error" {
        return Some(End);
    }
    if let Some((_, known)) = TABLE.iter().find(|(known, _)| *known == data) {
        return Some(*known);
    }
    match serde_json::from_str(data) {
        _ if data.is_empty() => Some(Nothing),
        Ok(Value::Object(_)) => None,
        Ok(Value::Null) => Some(Nothing),
        Ok(_) | Err(_) => Some(FirstToken),
    }
}

/// Name and data of each event that has ended with a blank line.
fn events(body: &[u8]) -> Vec<(String, String)> {
    let mut events = Vec::new();
    let mut lines = Vec::new();
    for line in lines_of(body) {
        if !line.is_empty() {
            lines.push(line);
        } else if !lines.is_empty() {
            events.push(event(&std::mem::take(&mut lines)));
        }
    }
    events
}

/// The lines that have ended, be it with LF, CR or CRLF. What is not ASCII is
/// some text: which does not matter.
fn lines_of(body: &[u8]) -> Vec<String> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut before = b' ';
    for &byte in body {
        match byte {
            b'\n' if before == b'\r' => {}
            b'\n' | b'\r' => lines.push(std::mem::take(&mut line)),
            _ if byte.is_ascii() => line.push(byte as char),
            _ => line.push('?'),
        }
        before = byte;
    }
    lines
}

fn event(lines: &[String]) -> (String, String) {
    let mut name = String::new();
    let mut data = Vec::new();
    for line in lines {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = value.to_owned(),
            "data" => data.push(value),
            _ => {}
        }
    }
    (name, data.join("\n"))
}
