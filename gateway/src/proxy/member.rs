//! One member of a JSON body, found without keeping anything else of it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::pieces::Pieces;

/// The value of the member `name` at the top of a body that comes in `pieces`: the
/// last one of that name, as engines read it. `None` if there is none, or if this is
/// no JSON object, which is for the engine to say.
pub fn last<'a>(pieces: impl Iterator<Item = &'a [u8]>, name: &str) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_reader(Pieces::new(pieces));
    reader.deserialize_map(Last(name)).ok().flatten()
}

struct Last<'n>(&'n str);

impl<'de> Visitor<'de> for Last<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Option<Value>, A::Error> {
        let mut last = None;
        while let Some(this) = members.next_key_seed(Is(self.0))? {
            if this {
                last = Some(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(last)
    }
}

/// Whether a name is this one.
struct Is<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<bool, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_of_that_name_at_the_top_is_the_one() {
        let read = |body: &str| last(body.as_bytes().chunks(3), "stream");
        for (body, found) in [
            (r#"{"a":[1,{"stream":2}],"stream":true}"#, Some(json!(true))),
            (r#"{"stream":1,"str\u0065am":null}"#, Some(json!(null))),
            (r#"{"a":{"stream":true}}"#, None),
            (r#"{"stream":true"#, None),
            (r#"{"stream":true,}"#, None),
            ("[]", None),
            ("", None),
            ("\u{0}\u{1}tensor", None),
        ] {
            assert_eq!(read(body), found, "{body}");
        }
    }
}
