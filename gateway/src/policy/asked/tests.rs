//! Bodies of all dialects, and odd ones.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::size::FILE_TOKENS;
use super::*;

/// However it comes, it asks for the same.
fn asked(body: &str) -> Asked {
    let asked = read(body.as_bytes().chunks(7));
    assert_eq!(read(std::iter::once(body.as_bytes())), asked, "{body:.100}");
    if let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(body) {
        let mut by_member = Asked::default();
        members
            .iter()
            .for_each(|(name, value)| by_member.member(name, value.get()));
        assert_eq!(by_member, asked, "{body:.100}");
    }
    asked
}

#[test]
fn texts_token_ids_and_images_have_their_sizes() {
    for (body, input) in [
        (r#"{"prompt":"12345678"}"#, 2),
        (r#"{"prompt":"123456789"}"#, 3),
        (r#"{"prompt":[1,2,3]}"#, 3),
        (r#"{"prompt":["1234","5678"]}"#, 2),
        (r#"{"messages":[{"role":"user","content":"12345678"}]}"#, 3),
        (r#"{"input":"1234","instructions":"5678"}"#, 2),
        (r#"{"inputs":[{"data":[0.5,1.5,-2],"shape":[3]}]}"#, 3),
        (r#"{"text":null,"other":"12345678"}"#, 0),
        ("not json", 2),
        ("", 0),
    ] {
        assert_eq!(asked(body).input().all, input, "{body}");
    }
    let image = format!("data:image/png;base64,{}", "A".repeat(100_000));
    let body = format!(r#"{{"messages":[{{"content":[{{"image_url":{{"url":"{image}"}}}}]}}]}}"#);
    assert_eq!(asked(&body).input(), InputSize::one(FILE_TOKENS));
}

/// Base64 of a megabyte is no quarter of a million tokens.
#[test]
fn sounds_and_files_in_any_dialect_count_as_files() {
    let long = "A".repeat(1 << 20);
    for (body, more) in [
        (
            r#"{"messages":[{"content":[{"input_audio":{"data":"LONG","format":"wav"}}]}]}"#,
            1,
        ),
        (
            r#"{"messages":[{"content":[{"source":{"type":"base64","data":"LONG"}}]}]}"#,
            2,
        ),
        (
            r#"{"input":[{"content":[{"file_data":"data:application/pdf;base64,LONG"}]}]}"#,
            0,
        ),
        (
            r#"{"inputs":"1234![](data:image/png;base64,LONG)12345678"}"#,
            4,
        ),
    ] {
        let size = asked(&body.replace("LONG", &long)).input();
        assert_eq!(size, InputSize::one(FILE_TOKENS + more), "{body}");
    }
    let form = format!("--x\r\n\r\n{long}");
    assert_eq!(asked(&form).input(), InputSize::one(FILE_TOKENS));
    let short = r#"{"messages":[{"content":[{"input_audio":{"data":"12345678"}}]}]}"#;
    assert_eq!(asked(short).input(), InputSize::one(2));
}

#[test]
fn each_row_of_a_batch_is_a_sequence_of_its_own() {
    for (body, all, longest, sequences) in [
        (r#"{"prompt":["1234","12345678"]}"#, 3, 2, 2),
        (r#"{"input":[[1,2,3],[4]]}"#, 4, 3, 2),
        (r#"{"input_ids":[1,2,3]}"#, 3, 3, 1),
        (
            r#"{"query":"1234","documents":["12345678","1234"]}"#,
            5,
            3,
            2,
        ),
        (
            r#"{"query":"1234","documents":[{"text":"12345678"},{"text":"1234"}]}"#,
            5,
            3,
            2,
        ),
        (
            r#"{"messages":[{"content":"1234"},{"content":"1234"}]}"#,
            2,
            2,
            1,
        ),
        (r#"{"prompt":[]}"#, 0, 0, 1),
    ] {
        let size = InputSize {
            all,
            longest,
            sequences,
        };
        assert_eq!(asked(body).input(), size, "{body}");
    }
}

#[test]
fn a_tensor_is_work_and_no_tokens() {
    let tensor =
        r#"{"inputs":[{"name":"x","shape":[2,2],"datatype":"FP32","data":[[1,2],[3,4]]}]}"#;
    let size = asked(tensor).input();
    assert!(size.all >= 4);
    assert_eq!((size.longest, size.sequences), (0, 1));
}

#[test]
fn the_model_the_output_and_streaming_are_found_under_each_engines_names() {
    let all = asked(r#"{"model":"m","max_tokens":7,"stream":true,"prompt":""}"#);
    assert_eq!(all.model, "m");
    assert_eq!((all.most_output, all.stream), (Some(7), true));
    for body in [
        r#"{"max_completion_tokens":7}"#,
        r#"{"parameters":{"max_new_tokens":7,"top_p":1}}"#,
        r#"{"n_predict":7,"sampling_params":{}}"#,
    ] {
        assert_eq!(asked(body).most_output, Some(7), "{body}");
    }
}

#[test]
fn values_of_another_kind_say_nothing_and_break_nothing() {
    let odd = asked(r#"{"model":7,"max_tokens":-1,"stream":"yes","prompt":"1234"}"#);
    let nothing = Asked {
        shared: 1,
        ..Asked::default()
    };
    assert_eq!(odd, nothing);
    let long = format!(r#"{{"model":"{}"}}"#, "m".repeat(1_000));
    assert_eq!(asked(&long).model, "");
    // Deeper than is looked at, and than the reader itself goes.
    for depth in [60, 5_000] {
        let deep = format!(
            r#"{{"prompt":{}"1234"{}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        let _ = asked(&deep);
    }
}
