//! What a request's body asks for: its model, its size, and how long an answer.
//!
//! Sizes are estimates, made without a tokenizer:
//!
//! | value | counts |
//! | --- | --- |
//! | a text | a token for each 4 bytes, rounded up |
//! | an image, a sound or a file in base64 | 1,024 tokens at most, whatever its length |
//! | a number | 1: a token id, or an element of a tensor |
//!
//! Such a file is a `data:` URL, alone or as Markdown's image within a text, or the text
//! under `data`, `file_data` or `b64_json` of a part of a message. What a model makes of it
//! depends on its resolution and not on the bytes.
//!
//! Everything under `prompt`, `messages`, `input`, `inputs`, `system`, `text`,
//! `input_ids`, `instructions`, `query`, `documents` and `tools` is input. A list of texts
//! or of lists of token ids, as of embeddings, or a list of documents is a batch: each of
//! its rows is a sequence, with all that is not a row before it. Objects with a `shape` or
//! a `datatype` are tensors, whose elements are work but no tokens of a cache.
//! A body that is no JSON object, such as a form with a sound, is one file.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use tidegate_policy::profile::InputSize;

use crate::proxy::pieces::Pieces;

/// Bytes of text that make a token, about.
const BYTES_PER_TOKEN: u64 = 4;

/// What an embedded image, sound or file counts at most.
const FILE_TOKENS: u64 = 1_024;

/// Members under which a part of a message has a file in base64.
const FILES: [&str; 3] = ["data", "file_data", "b64_json"];

/// How Markdown begins an image that is in the text itself.
const EMBEDDED: &str = "](data:";

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
    /// Tokens or elements of its input that are in every sequence.
    pub shared: u64,
    /// Those of the rows of a batch, together.
    pub rows: u64,
    /// Those of the longest row.
    pub longest_row: u64,
    /// How many rows there are.
    pub row_count: u64,
    /// Elements of its tensors.
    pub elements: u64,
    /// The most tokens that it wants generated, if it says.
    pub most_output: Option<u64>,
    /// Whether it wants its answer streamed.
    pub stream: bool,
}

impl Asked {
    /// The size of its input.
    #[must_use]
    pub fn input(&self) -> InputSize {
        let sequences = self.row_count.max(1);
        let tokens = self.shared.saturating_mul(sequences);
        InputSize {
            all: tokens
                .saturating_add(self.rows)
                .saturating_add(self.elements),
            longest: self.shared.saturating_add(self.longest_row),
            sequences,
        }
    }

    /// Takes in one more member of the body, which stands there as this text.
    pub fn member(&mut self, name: &str, text: &str) {
        let mut reader = serde_json::Deserializer::from_str(text);
        let member = Member { of: self, name };
        if member.deserialize(&mut reader).is_err() && INPUTS.contains(&name) {
            self.shared = self.shared.saturating_add(of_file(text.len()));
        }
    }

    fn add(&mut self, input: &Part, name: &str) {
        match input.kind {
            Kind::Tensor => self.elements = self.elements.saturating_add(input.size),
            Kind::Batch => self.add_rows(input),
            Kind::Objects if name == "documents" => self.add_rows(input),
            _ => self.shared = self.shared.saturating_add(input.size),
        }
    }

    fn add_rows(&mut self, input: &Part) {
        self.rows = self.rows.saturating_add(input.size);
        self.row_count = self.row_count.saturating_add(input.count);
        self.longest_row = self.longest_row.max(input.longest);
    }
}

/// Reads a body that comes in `pieces`; in one it takes a tenth of the time.
pub fn read<'a>(pieces: impl Iterator<Item = &'a [u8]> + Clone) -> Asked {
    let mut first = pieces.clone();
    let asked = match (first.next(), first.next()) {
        (Some(all), None) => serde_json::Deserializer::from_slice(all).deserialize_map(Body),
        _ => {
            let pieces = Pieces::new(pieces.clone());
            serde_json::Deserializer::from_reader(pieces).deserialize_map(Body)
        }
    };
    asked.unwrap_or_else(|_| Asked {
        shared: of_file(pieces.map(<[u8]>::len).sum()),
        ..Asked::default()
    })
}

/// The tokens of what is no text.
fn of_file(bytes: usize) -> u64 {
    tokens(bytes).min(FILE_TOKENS)
}

fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

/// The tokens of a text, with files that are embedded in it.
fn of_text(text: &str) -> u64 {
    if text.starts_with("data:") {
        return FILE_TOKENS;
    }
    let mut rest = text.split(EMBEDDED);
    let first = tokens(rest.next().unwrap_or_default().len());
    rest.fold(first, |sum, embedded| {
        let after = embedded.split_once(')').map_or("", |(_, after)| after);
        sum.saturating_add(FILE_TOKENS)
            .saturating_add(tokens(after.len()))
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
            let (of, name) = (&mut asked, name.as_str());
            members.next_value_seed(Member { of, name })?;
        }
        Ok(asked)
    }
}

/// One member of a body, read into what the whole asks for.
struct Member<'a> {
    of: &'a mut Asked,
    name: &'a str,
}

impl<'de> DeserializeSeed<'de> for Member<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        let Self { of, name } = self;
        if INPUTS.contains(&name) {
            let input = Size(MOST_DEPTH).deserialize(value)?;
            of.add(&input, name);
        } else if MOST_OUTPUT.contains(&name) {
            of.most_output = Loose::<u64>::deserialize(value)?.0;
        } else if name == "parameters" || name == "sampling_params" {
            // TGI's and SGLang's own routes say it in there.
            let inner = Loose::<Parameters>::deserialize(value)?.0;
            let most = inner.and_then(|inner| inner.max_new_tokens);
            of.most_output = most.or(of.most_output);
        } else if name == "model" {
            let model = Loose::<String>::deserialize(value)?.0;
            of.model = model
                .filter(|name| name.len() <= LONGEST_MODEL)
                .unwrap_or_default();
        } else if name == "stream" {
            of.stream = Loose::<bool>::deserialize(value)?.0.unwrap_or(false);
        } else {
            IgnoredAny::deserialize(value)?;
        }
        Ok(())
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

/// A value's size, and what it is.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    size: u64,
    kind: Kind,
    /// Of a list: how many items it has, and the size of the longest.
    count: u64,
    longest: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// A number, or nothing.
    #[default]
    Single,
    Text,
    /// A list of numbers: one sequence.
    Numbers,
    /// A list of texts or lists.
    Batch,
    Object,
    /// A list of objects.
    Objects,
    /// A tensor, or a list of them.
    Tensor,
}

impl Part {
    fn of(kind: Kind, size: u64) -> Self {
        Self {
            size,
            kind,
            ..Self::default()
        }
    }

    fn push(&mut self, item: &Part) {
        self.size = self.size.saturating_add(item.size);
        self.count += 1;
        self.longest = self.longest.max(item.size);
        // As its first item is.
        if self.count == 1 {
            self.kind = match item.kind {
                Kind::Single => Kind::Numbers,
                Kind::Text | Kind::Numbers | Kind::Batch => Kind::Batch,
                Kind::Object | Kind::Objects => Kind::Objects,
                Kind::Tensor => Kind::Tensor,
            };
        }
    }
}

/// Adds up the size of any value, so many levels deep.
#[derive(Clone, Copy)]
struct Size(u32);

impl<'de> DeserializeSeed<'de> for Size {
    type Value = Part;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Part, D::Error> {
        if self.0 == 0 {
            return IgnoredAny::deserialize(deserializer).map(|_| Part::default());
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Size {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Part, E> {
        Ok(Part::of(Kind::Text, of_text(text)))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Part, E> {
        Ok(Part::of(Kind::Single, 1))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Part, E> {
        Ok(Part::of(Kind::Single, 1))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Part, E> {
        Ok(Part::of(Kind::Single, 1))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_unit<E>(self) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Part, A::Error> {
        let mut all = Part::default();
        while let Some(item) = items.next_element_seed(Size(self.0 - 1))? {
            all.push(&item);
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Part, A::Error> {
        let mut all = Part::of(Kind::Object, 0);
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(Size(self.0 - 1))?;
            let size = match name.as_str() {
                "shape" | "datatype" => {
                    all.kind = Kind::Tensor;
                    0
                }
                file if value.kind == Kind::Text && FILES.contains(&file) => {
                    value.size.min(FILE_TOKENS)
                }
                _ => value.size,
            };
            all.size = all.size.saturating_add(size);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

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
        let body =
            format!(r#"{{"messages":[{{"content":[{{"image_url":{{"url":"{image}"}}}}]}}]}}"#);
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
}
