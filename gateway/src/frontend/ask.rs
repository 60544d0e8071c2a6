//! What the frontend reads of a request: which model, and how large the prompt.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
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

/// The members that are read. A second `model` is refused: who reads the body next
/// might take the other one.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    inputs: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    query: Option<&'a RawValue>,
    #[serde(borrow)]
    documents: Option<&'a RawValue>,
    #[serde(borrow)]
    system: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
}

/// Reads a request whose path names `in_path`, if any.
///
/// # Errors
/// What is wrong with it, and what is accepted.
pub fn read(
    model_in: ModelIn,
    in_path: Option<String>,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Ask, AskError> {
    let prompt_bytes = body.len() as u64;
    if model_in == ModelIn::Path {
        return Ok(Ask {
            model: in_path,
            prompt_bytes,
        });
    }
    let json = is_json(headers);
    if json != Some(true) && model_in == ModelIn::BodyIfAny {
        // Such as a form with a file: any worker may have it.
        return Ok(Ask {
            model: None,
            prompt_bytes,
        });
    }
    if json == Some(false) {
        return Err(AskError::ContentType);
    }
    let encoded = headers.get(CONTENT_ENCODING);
    if encoded.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(AskError::Encoding);
    }
    let text = std::str::from_utf8(body).map_err(|error| AskError::Utf8(error.valid_up_to()))?;
    // An array would be taken for the members in order.
    if !text.trim_start().starts_with(['{']) && serde_json::from_str::<&RawValue>(text).is_ok() {
        return Err(AskError::NoObject);
    }
    let body: Body<'_> = serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            AskError::Shape(error.to_string())
        } else {
            AskError::Syntax(error.to_string())
        }
    })?;
    Ok(Ask {
        prompt_bytes: body.prompt_bytes(),
        model: body.model,
    })
}

impl Body<'_> {
    fn prompt_bytes(&self) -> u64 {
        let parts = [
            self.messages,
            self.prompt,
            self.input,
            self.inputs,
            self.text,
            self.query,
            self.documents,
            self.system,
            self.tools,
        ];
        let len = |part: &RawValue| part.get().len() as u64;
        parts.into_iter().flatten().map(len).sum()
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
        )
    }

    #[test]
    fn the_model_and_the_size_of_the_prompt_are_read() {
        let ask = of(r#" {"stream":true,"messages":[1,2],"model":"a\u0062", "x":{"model":"c"}}"#);
        let ask = ask.unwrap();
        assert_eq!(ask.model.as_deref(), Some("ab"));
        assert_eq!(ask.prompt_bytes, "[1,2]".len() as u64);
        assert_eq!(of("{}").unwrap(), Ask::default());
        assert_eq!(of(r#"{"model":null}"#).unwrap().model, None);
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
            read(ModelIn::Body, None, headers, &body).map(|ask| ask.model.unwrap())
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
        let ask = read(ModelIn::Path, Some("m".into()), &HeaderMap::new(), &body);
        assert_eq!(ask.unwrap().model.as_deref(), Some("m"));
        let form = typed("multipart/form-data; boundary=x");
        let ask = read(ModelIn::BodyIfAny, None, &form, &body).unwrap();
        assert_eq!((ask.model, ask.prompt_bytes), (None, 2));
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
