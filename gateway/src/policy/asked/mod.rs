//! What a request's body asks for: its model, its size, and how long an answer.
//!
//! Everything under `prompt`, `messages`, `input`, `inputs`, `system`, `text`,
//! `input_ids`, `instructions`, `query`, `documents` and `tools` is input. A list of texts
//! or of lists of token ids, as of embeddings, or a list of documents is a batch: each of
//! its rows is a sequence, with all that is not a row before it. Objects with a `shape` or
//! a `datatype` are tensors, whose elements are work but no tokens of a cache.
//! A body that is no JSON object, such as a form with a sound, is one file.
//!
//! How much each value is, `size` estimates.

mod size;

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use tidegate_policy::profile::InputSize;

use crate::proxy::pieces::Pieces;
use size::{Kind, Part, Size, of_file};

/// Names that are longer stand for no model.
const LONGEST_MODEL: usize = 256;

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
            let input = Size::of_all().deserialize(value)?;
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

#[cfg(test)]
mod tests;
