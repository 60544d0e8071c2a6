//! How much a JSON value is, whatever it is of.
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

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Bytes of text that make a token, about.
const BYTES_PER_TOKEN: u64 = 4;

/// What an embedded image, sound or file counts at most.
pub(super) const FILE_TOKENS: u64 = 1_024;

/// Members under which a part of a message has a file in base64.
const FILES: [&str; 3] = ["data", "file_data", "b64_json"];

/// How Markdown begins an image that is in the text itself.
const EMBEDDED: &str = "](data:";

/// Nested deeper than this the rest counts nothing.
const MOST_DEPTH: u32 = 32;

/// The tokens of what is no text.
pub(super) fn of_file(bytes: usize) -> u64 {
    tokens(bytes).min(FILE_TOKENS)
}

/// The tokens of so much text.
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

/// A value's size, and what it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    pub(super) size: u64,
    pub(super) kind: Kind,
    /// Of a list: how many items it has, and the size of the longest.
    pub(super) count: u64,
    pub(super) longest: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
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
pub(super) struct Size(u32);

impl Size {
    /// Of a whole value.
    pub(super) fn of_all() -> Self {
        Self(MOST_DEPTH)
    }
}

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
