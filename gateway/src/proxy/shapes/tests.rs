//! Every known shape, with and without content.

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
            r#"{"model_name":"m","id":"1","outputs":[]}"#,
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
            r#"{"model_name":"m","outputs":[{"name":"y","datatype":"FP32","shape":[1],"data":[0.5]}]}"#,
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
