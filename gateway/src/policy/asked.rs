//! What a request's body asks for: its model, its size, and how long an answer.
//!
//! Sizes are estimates, made without a tokenizer:
//!
//! | value | counts |
//! | --- | --- |
//! | a text | a token for each 4 bytes, rounded up |
//! | a `data:` URL, such as an image | 1,024, whatever its length |
//! | a number | 1: a token id, or an element of a tensor |
//!
//! Everything under `prompt`, `messages`, `input`, `inputs`, `system`, `text`,
//! `input_ids`, `instructions`, `query`, `documents` and `tools` is input. A body
//! that is no JSON object is one input of its length.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::proxy::pieces::Pieces;

/// Bytes of text that make a token, about.
const BYTES_PER_TOKEN: u64 = 4;

/// What an embedded image, sound or file counts.
const DATA_URL_TOKENS: u64 = 1_024;

/// Names that are longer stand for no model.
const LONGEST_MODEL: usize = 256;

/// Nested deeper than this the rest counts nothing.
const MOST_DEPTH: u32 = 32;

const INPUTS: [&str; 11] = [
    "prompt",
    "messages",
    "input",
    "inputs",
    "system",
    "text",
    "input_ids",
    "instructions",
    "query",
    "documents",
    "tools",
];

const MOST_OUTPUT: [&str; 5] = [
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "n_predict",
];

/// What a body asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The model that it names; empty without one.
    pub model: String,
    /// The size of its input, in tokens or elements.
    pub input: u64,
    /// The most tokens that it wants generated, if it says.
    pub most_output: Option<u64>,
    /// Whether it wants its answer streamed.
    pub stream: bool,
}

/// Reads a body that comes in `pieces`.
pub fn read<'a>(pieces: impl Iterator<Item = &'a [u8]> + Clone) -> Asked {
    let mut reader = serde_json::Deserializer::from_reader(Pieces::new(pieces.clone()));
    reader.deserialize_map(Body).unwrap_or_else(|_| {
        let bytes: usize = pieces.map(<[u8]>::len).sum();
        Asked {
            input: (bytes as u64).div_ceil(BYTES_PER_TOKEN),
            ..Asked::default()
        }
    })
}

struct Body;

impl<'de> Visitor<'de> for Body {
    type Value = Asked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Asked, A::Error> {
        let mut asked = Asked::default();
        while let Some(name) = members.next_key::<String>()? {
            if INPUTS.contains(&name.as_str()) {
                asked.input = asked
                    .input
                    .saturating_add(members.next_value_seed(Size(MOST_DEPTH))?);
            } else if MOST_OUTPUT.contains(&name.as_str()) {
                asked.most_output = members.next_value::<Loose<u64>>()?.0;
            } else if name == "parameters" || name == "sampling_params" {
                // TGI's and SGLang's own routes say it in there.
                let inner = members.next_value::<Loose<Parameters>>()?.0;
                let most = inner.and_then(|inner| inner.max_new_tokens);
                asked.most_output = most.or(asked.most_output);
            } else if name == "model" {
                let model = members.next_value::<Loose<String>>()?.0;
                asked.model = model
                    .filter(|name| name.len() <= LONGEST_MODEL)
                    .unwrap_or_default();
            } else if name == "stream" {
                asked.stream = members.next_value::<Loose<bool>>()?.0.unwrap_or(false);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(asked)
    }
}

#[derive(Deserialize)]
struct Parameters {
    max_new_tokens: Option<u64>,
}

/// A value of the kind, or any other, which says nothing.
struct Loose<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Loose<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either<T> {
            Told(T),
            Other(IgnoredAny),
        }
        Ok(match Either::deserialize(deserializer)? {
            Either::Told(told) => Loose(Some(told)),
            Either::Other(_) => Loose(None),
        })
    }
}

/// Adds up the size of any value, so many levels deep.
#[derive(Clone, Copy)]
struct Size(u32);

impl<'de> DeserializeSeed<'de> for Size {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        if self.0 == 0 {
            return IgnoredAny::deserialize(deserializer).map(|_| 0);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Size {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<u64, E> {
        Ok(match text.starts_with("data:") {
            true => DATA_URL_TOKENS,
            false => (text.len() as u64).div_ceil(BYTES_PER_TOKEN),
        })
    }

    fn visit_u64<E>(self, _: u64) -> Result<u64, E> {
        Ok(1)
    }

    fn visit_i64<E>(self, _: i64) -> Result<u64, E> {
        Ok(1)
    }

    fn visit_f64<E>(self, _: f64) -> Result<u64, E> {
        Ok(1)
    }

    fn visit_bool<E>(self, _: bool) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_unit<E>(self) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
        let mut sum: u64 = 0;
        while let Some(size) = items.next_element_seed(Size(self.0 - 1))? {
            sum = sum.saturating_add(size);
        }
        Ok(sum)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<u64, A::Error> {
        let mut sum: u64 = 0;
        while members.next_key::<IgnoredAny>()?.is_some() {
            sum = sum.saturating_add(members.next_value_seed(Size(self.0 - 1))?);
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(body: &str) -> Asked {
        read(body.as_bytes().chunks(7))
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
            (r#"{"inputs":[{"data":[0.5,1.5,-2],"shape":[3]}]}"#, 4),
            (r#"{"text":null,"other":"12345678"}"#, 0),
            ("not json", 2),
            ("", 0),
        ] {
            assert_eq!(asked(body).input, input, "{body}");
        }
        let image = format!("data:image/png;base64,{}", "A".repeat(100_000));
        let body =
            format!(r#"{{"messages":[{{"content":[{{"image_url":{{"url":"{image}"}}}}]}}]}}"#);
        assert_eq!(asked(&body).input, DATA_URL_TOKENS);
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
            input: 1,
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
}
