//! What the frontend reads of a request: which model, and how large the prompt.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

use super::endpoint::ModelIn;

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// The model, if one is named.
    pub model: Option<String>,
    /// Bytes of the prompt, as it stands in the body.
    pub prompt_bytes: u64,
    /// Whether the body was read, as JSON.
    pub is_read: bool,
}

/// Why a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AskError {
    /// It says that it is something else than JSON.
    #[error("Content-Type must be application/json")]
    ContentType,
    /// It is compressed, and would have to be unpacked.
    #[error("Content-Encoding must be left out: the body is read as it is")]
    Encoding,
    /// Bytes that are no text.
    #[error("the body is not valid UTF-8: byte {0} begins no character")]
    Utf8(usize),
    /// No JSON.
    #[error("the body is not JSON: {0}")]
    Syntax(String),
    /// JSON of another kind.
    #[error("the body must be a JSON object")]
    NoObject,
    /// A member that cannot be.
    #[error("the body is JSON of another shape: {0}")]
    Shape(String),
}

impl AskError {
    /// The status that tells the client.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::ContentType | Self::Encoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// The member that it is about, for OpenAI's clients.
    #[must_use]
    pub fn param(&self) -> Option<&'static str> {
        matches!(self, Self::Shape(_)).then_some("model")
    }
}

/// The members that are the prompt.
const PROMPT: [&str; 9] = [
    "messages",
    "prompt",
    "input",
    "inputs",
    "text",
    "query",
    "documents",
    "system",
    "tools",
];

/// Reads a request whose path names `in_path`, if any. If the body is read, which takes one
/// pass over it, `also` gets to see the name and the text of each member but the model.
///
/// # Errors
/// What is wrong with it, and what is accepted.
pub fn read(
    model_in: ModelIn,
    in_path: Option<String>,
    headers: &HeaderMap,
    body: &Bytes,
    also: impl FnMut(&str, &str),
) -> Result<Ask, AskError> {
    let unread = |model| Ask {
        model,
        prompt_bytes: body.len() as u64,
        is_read: false,
    };
    if model_in == ModelIn::Path {
        return Ok(unread(in_path));
    }
    let json = is_json(headers);
    if json != Some(true) && model_in == ModelIn::BodyIfAny {
        // Such as a form with a file: any worker may have it.
        return Ok(unread(None));
    }
    if json == Some(false) {
        return Err(AskError::ContentType);
    }
    let encoded = headers.get(CONTENT_ENCODING);
    if encoded.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(AskError::Encoding);
    }
    let text = std::str::from_utf8(body).map_err(|error| AskError::Utf8(error.valid_up_to()))?;
    if !text.trim_start().starts_with(['{']) && serde_json::from_str::<&RawValue>(text).is_ok() {
        return Err(AskError::NoObject);
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let ask = reader.deserialize_map(Members(also));
    ask.and_then(|ask| reader.end().map(|()| ask))
        .map_err(|error| {
            if error.is_data() {
                AskError::Shape(error.to_string())
            } else {
                AskError::Syntax(error.to_string())
            }
        })
}

/// Reads members, and shows them to another reader. Of those that count here a second one is
/// refused: who reads the body next might take the other one.
struct Members<F>(F);

/// A member's name, not copied unless it has escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de, F: FnMut(&str, &str)> Visitor<'de> for Members<F> {
    type Value = Ask;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Ask, A::Error> {
        let mut ask = Ask {
            is_read: true,
            ..Ask::default()
        };
        let mut seen = Vec::new();
        while let Some(Name(name)) = members.next_key()? {
            let known = ["model"]
                .iter()
                .chain(&PROMPT)
                .find(|known| **known == name);
            if let Some(known) = known {
                if seen.contains(known) {
                    return Err(A::Error::duplicate_field(known));
                }
                seen.push(known);
            }
            if known == Some(&"model") {
                ask.model = members.next_value()?;
                continue;
            }
            let text = members.next_value::<&RawValue>()?.get();
            (self.0)(&name, text);
            if known.is_some() && text != "null" {
                ask.prompt_bytes = ask.prompt_bytes.saturating_add(text.len() as u64);
            }
        }
        Ok(ask)
    }
}

/// Whether it says that it is JSON; `None` if it says nothing.
fn is_json(headers: &HeaderMap) -> Option<bool> {
    let kind = headers.get(CONTENT_TYPE)?;
    let Ok(kind) = kind.to_str() else {
        return Some(false);
    };
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let suffixed = kind.starts_with("application/") && kind.ends_with("+json");
    Some(kind == "application/json" || suffixed)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn typed(kind: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))])
    }

    fn of(body: impl Into<Bytes>) -> Result<Ask, AskError> {
        read(
            ModelIn::Body,
            None,
            &typed("application/json"),
            &body.into(),
            |_, _| {},
        )
    }

    #[test]
    fn the_model_and_the_size_of_the_prompt_are_read() {
        let ask = of(r#" {"stream":true,"messages":[1,2],"model":"a\u0062", "x":{"model":"c"}}"#);
        let ask = ask.unwrap();
        assert_eq!(ask.model.as_deref(), Some("ab"));
        assert_eq!(ask.prompt_bytes, "[1,2]".len() as u64);
        let nothing = Ask {
            is_read: true,
            ..Ask::default()
        };
        assert_eq!(of("{}").unwrap(), nothing);
        assert_eq!(of(r#"{"prompt":null}"#).unwrap(), nothing);
        assert_eq!(of(r#"{"model":null}"#).unwrap().model, None);
    }

    #[test]
    fn another_reader_sees_each_member_as_it_stands_but_the_model() {
        let mut seen = Vec::new();
        let body = Bytes::from_static(br#"{"model":"m","m\u0061x": 7 ,"prompt":["a", 1]}"#);
        let see = |name: &str, text: &str| seen.push(format!("{name}={text}"));
        read(ModelIn::Body, None, &HeaderMap::new(), &body, see).unwrap();
        assert_eq!(seen, ["max=7", r#"prompt=["a", 1]"#]);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let status = |body: &'static [u8]| of(body).map_err(|error| error.status().as_u16());
        for bad in [
            &b""[..],
            b"{",
            b"{]",
            b"{} {}",
            b"[\"m\"]",
            b"\"m\"",
            b"7",
            b"null",
            b"model=m",
            b"{\"model\":7}",
            b"{\"model\":{}}",
            b"{\"model\":\"a\",\"model\":\"b\"}",
            b"{\"prompt\":\"a\",\"prompt\":null}",
            b"{\"model\":\"\xff\"}",
            b"{\"x\":\"\xff\"}",
            b"\xef\xbb\xbf{}",
        ] {
            assert_eq!(status(bad), Err(400), "{}", String::from_utf8_lossy(bad));
        }
        assert_eq!(of("[\"m\"]"), Err(AskError::NoObject));
        assert_eq!(of(&b"{\"x\":\"\xff\"}"[..]), Err(AskError::Utf8(6)));
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        // Skipped without recursion, and for the engine to refuse.
        let ask = of(format!(r#"{{"messages":{deep},"model":"m"}}"#)).unwrap();
        assert_eq!(ask.prompt_bytes, 200_000);
    }

    #[test]
    fn other_content_types_are_refused_and_none_is_taken_for_json() {
        let body = Bytes::from_static(br#"{"model":"m"}"#);
        let read = |headers: &HeaderMap| {
            read(ModelIn::Body, None, headers, &body, |_, _| {}).map(|ask| ask.model.unwrap())
        };
        assert_eq!(read(&HeaderMap::new()).unwrap(), "m");
        assert_eq!(
            read(&typed("Application/JSON; charset=utf-8")).unwrap(),
            "m"
        );
        assert_eq!(read(&typed("application/vnd.api+json")).unwrap(), "m");
        for kind in ["text/plain", "", "application/x-www-form-urlencoded"] {
            assert_eq!(read(&typed(kind)), Err(AskError::ContentType), "{kind}");
        }
        let mut packed = typed("application/json");
        packed.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert_eq!(read(&packed), Err(AskError::Encoding));
    }

    #[test]
    fn bodies_of_other_kinds_pass_where_the_model_is_not_in_them() {
        let body = Bytes::from_static(b"\xff\x00");
        let seen = |_: &str, _: &str| panic!("nobody reads it");
        let ask = read(
            ModelIn::Path,
            Some("m".into()),
            &HeaderMap::new(),
            &body,
            seen,
        );
        assert_eq!(ask.unwrap().model.as_deref(), Some("m"));
        let form = typed("multipart/form-data; boundary=x");
        let ask = read(ModelIn::BodyIfAny, None, &form, &body, seen).unwrap();
        assert_eq!((ask.model, ask.prompt_bytes, ask.is_read), (None, 2, false));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = of(bytes);
        }

        #[test]
        fn near_json_is_answered(text in r#"[{}\[\]"model:,a0-9\\u ]{0,60}"#) {
            let _ = of(text);
        }
    }
}
