//! Which models a worker serves, as its `/v1/models` tells.
//!
//! | it answers | it serves |
//! | --- | --- |
//! | a list | what is on it |
//! | that there is no such page, or that the page needs a key | anything that no other worker lists |
//! | anything else that is no list | the same |
//! | nothing, or a server error | what it served before |

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use crate::proxy::engine::{Engine, EngineError};

/// The page.
const PATH: &str = "/v1/models";

/// Names that one worker may list, and bytes in one: they become labels.
const MOST: usize = 1000;
const LONGEST: usize = 256;

/// What a worker serves. A cheap clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Served {
    /// It was not heard yet.
    #[default]
    Unknown,
    /// It has no list.
    Unlisted,
    /// These, each with what the worker says of it.
    Listed(Arc<BTreeMap<String, Value>>),
}

impl Served {
    /// Whether it lists this model.
    #[must_use]
    pub fn lists(&self, model: &str) -> bool {
        matches!(self, Self::Listed(models) if models.contains_key(model))
    }

    /// What it lists.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        let listed = match self {
            Self::Listed(models) => Some(models.keys()),
            Self::Unknown | Self::Unlisted => None,
        };
        listed.into_iter().flatten()
    }
}

/// Asks a worker; `None` if it should be asked again.
///
/// # Errors
/// When there is no answer within `time`.
pub async fn ask(http: &Engine, time: Duration) -> Result<Option<Served>, EngineError> {
    let (status, body) = http.page(PATH, "application/json", time).await?;
    Ok(read(status, &body))
}

/// What an answer says; `None` for a server error.
fn read(status: StatusCode, body: &[u8]) -> Option<Served> {
    if status.is_server_error() {
        return None;
    }
    let page: Option<Value> = status
        .is_success()
        .then(|| serde_json::from_slice(body).ok())
        .flatten();
    let Some(Value::Array(list)) = page.and_then(|mut page| page.get_mut("data").map(Value::take))
    else {
        return Some(Served::Unlisted);
    };
    let named = list.into_iter().filter_map(|entry| {
        let name = entry.get("id")?.as_str()?.to_owned();
        let usable = !name.is_empty() && name.len() <= LONGEST;
        usable.then_some((name, entry))
    });
    Some(Served::Listed(Arc::new(named.take(MOST).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(status: u16, body: &str) -> Option<Vec<String>> {
        let served = read(StatusCode::from_u16(status).unwrap(), body.as_bytes())?;
        match &served {
            Served::Listed(_) => Some(served.names().cloned().collect()),
            other => {
                assert_eq!(other, &Served::Unlisted);
                Some(vec!["(unlisted)".to_owned()])
            }
        }
    }

    #[test]
    fn a_list_is_read_and_what_is_not_a_name_is_passed_over() {
        let page = r#"{"object":"list","data":[{"id":"b"},{"id":"a","max_model_len":4096},
            {"id":7},{},null,{"id":""},{"id":"a"}]}"#;
        assert_eq!(names(200, page).unwrap(), ["a", "b"]);
        assert_eq!(names(200, r#"{"data":[]}"#).unwrap().len(), 0);
        let long = format!(r#"{{"data":[{{"id":"{}"}}]}}"#, "x".repeat(257));
        assert_eq!(names(200, &long).unwrap().len(), 0);
    }

    #[test]
    fn names_are_bounded_in_number() {
        let entries: Vec<String> = (0..2000).map(|n| format!(r#"{{"id":"m{n}"}}"#)).collect();
        let page = format!(r#"{{"data":[{}]}}"#, entries.join(","));
        assert_eq!(names(200, &page).unwrap().len(), MOST);
    }

    #[test]
    fn no_page_is_no_list_and_a_server_error_says_nothing() {
        for (status, body) in [
            (404, "{}"),
            (401, r#"{"data":[{"id":"a"}]}"#),
            (200, "not json"),
            (200, r#"{"data":{}}"#),
            (200, "[]"),
            (200, "\u{0}"),
        ] {
            assert_eq!(names(status, body).unwrap(), ["(unlisted)"], "{body}");
        }
        assert_eq!(names(503, r#"{"data":[{"id":"a"}]}"#), None);
    }
}
