//! The rank that a request's body asks for.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use thiserror::Error;

use super::pieces::Pieces;

/// The member that names it, as SGLang calls it.
const FIELD: &str = "data_parallel_rank";

/// A rank in a body that cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the body's {FIELD} must be a rank id, a number from 0 to 4294967295, or null")]
pub struct Malformed;

/// The rank in a body that comes in `pieces`: the last one named, as engines read
/// it. `None` if there is none, or if this is no JSON object, which is for the
/// engine to say.
///
/// # Errors
/// The member is there and holds something else.
pub fn rank<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Result<Option<u32>, Malformed> {
    let mut reader = serde_json::Deserializer::from_reader(Pieces::new(pieces));
    match reader.deserialize_map(Last) {
        Ok(Some(Value::Number(id))) => id
            .as_u64()
            .and_then(|id| u32::try_from(id).ok())
            .map(Some)
            .ok_or(Malformed),
        Ok(None | Some(Value::Null)) | Err(_) => Ok(None),
        Ok(Some(_)) => Err(Malformed),
    }
}

/// Finds the last value of the member, and keeps nothing else.
struct Last;

impl<'de> Visitor<'de> for Last {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Option<Value>, A::Error> {
        let mut last = None;
        while let Some(name) = members.next_key::<String>()? {
            if name == FIELD {
                last = Some(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Option<u32>, Malformed> {
        rank(body.as_bytes().chunks(3))
    }

    #[test]
    fn the_last_rank_at_the_top_is_the_one() {
        assert_eq!(
            read(r#"{"a":[1,{"b":2}],"data_parallel_rank":3}"#),
            Ok(Some(3))
        );
        assert_eq!(
            read(r#"{"data_parallel_rank":"x","data_parallel_rank":4294967295}"#),
            Ok(Some(u32::MAX))
        );
        for none in [
            "",
            "{}",
            "[]",
            "7",
            "{",
            r#"{"data_parallel_rank":null}"#,
            r#"{"x":{"data_parallel_rank":3}}"#,
            r#"{"data_parallel_rank":3"#,
            "\u{0}\u{1}tensor",
        ] {
            assert_eq!(read(none), Ok(None), "{none}");
        }
    }

    #[test]
    fn anything_else_there_is_malformed() {
        for bad in ["-1", "4294967296", "1.5", "\"3\"", "true", "[3]", "{}"] {
            let body = format!(r#"{{"data_parallel_rank":{bad}}}"#);
            assert_eq!(read(&body), Err(Malformed), "{bad}");
        }
    }
}
