//! The routes that go to workers, and where each says which model it is for.
//!
//! Paths are understood as a worker understands them (see `server::path`), so that
//! a spelling that its gate knows is one that is routed.

use http::Uri;

use crate::server::path::{normalise, split_first};

/// Where a request names its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelIn {
    /// In its JSON body, as OpenAI's calls must.
    Body,
    /// In its JSON body, if at all: engines' own calls go to any worker without.
    BodyIfAny,
    /// In its path; its body may be anything.
    Path,
}

/// One kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The label `endpoint` of metrics.
    pub label: &'static str,
    /// Where the model is named.
    pub model: ModelIn,
}

/// What `--route` adds.
pub const OTHER: Endpoint = Endpoint {
    label: "other",
    model: ModelIn::BodyIfAny,
};

/// A part in braces stands for any one part of a path: the model's name, or more.
const KNOWN: [(&str, &str, ModelIn); 11] = [
    ("/v1/chat/completions", "chat_completions", ModelIn::Body),
    ("/v1/completions", "completions", ModelIn::Body),
    ("/v1/responses", "responses", ModelIn::Body),
    ("/v1/embeddings", "embeddings", ModelIn::Body),
    ("/v1/rerank", "rerank", ModelIn::Body),
    ("/v1/messages", "messages", ModelIn::Body),
    ("/generate", "generate", ModelIn::BodyIfAny),
    ("/generate_stream", "generate_stream", ModelIn::BodyIfAny),
    ("/completion", "completion", ModelIn::BodyIfAny),
    ("/v2/models/{model}/infer", "infer", ModelIn::Path),
    (
        "/v2/models/{model}/versions/{}/infer",
        "infer",
        ModelIn::Path,
    ),
];

/// The call that a path stands for, and the model that it names, if it does.
#[must_use]
pub fn of(uri: &Uri) -> Option<(Endpoint, Option<String>)> {
    // An encoded slash belongs to a name before it separates parts.
    [split_first(uri.path()), normalise(uri.path())]
        .iter()
        .find_map(|parts| {
            KNOWN.iter().find_map(|&(pattern, label, model)| {
                let named = matches(pattern, parts)?;
                Some((Endpoint { label, model }, named))
            })
        })
}

/// Whether the parts are those of a pattern, and the model among them.
fn matches(pattern: &str, parts: &[String]) -> Option<Option<String>> {
    let expected: Vec<&str> = pattern.split('/').skip(1).collect();
    if expected.len() != parts.len() {
        return None;
    }
    let mut model = None;
    for (expected, part) in expected.into_iter().zip(parts) {
        match expected {
            "{model}" => model = Some(part.clone()),
            "{}" => {}
            _ if expected == part => {}
            _ => return None,
        }
    }
    Some(model)
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::worker::routes::{Route, Routes};

    fn label(path: &str) -> Option<&'static str> {
        of(&path.parse().unwrap()).map(|(endpoint, _)| endpoint.label)
    }

    #[test]
    fn every_route_here_is_one_that_a_worker_gates() {
        let routes = Routes::new([]);
        for (pattern, label, _) in KNOWN {
            let path = pattern.replace("{model}", "m").replace("{}", "1");
            let uri: Uri = path.parse().unwrap();
            assert_eq!(routes.of(&Method::POST, &uri), Route::Gated, "{path}");
            assert_eq!(of(&uri).unwrap().0.label, label);
        }
        assert_eq!(KNOWN.len(), crate::worker::routes::GATED.len());
    }

    #[test]
    fn spellings_are_understood_and_other_paths_are_none() {
        assert_eq!(
            label("//v1/./chat%2Fcompletions/"),
            Some("chat_completions")
        );
        assert_eq!(label("/v1/chat"), None);
        assert_eq!(label("/v1/models"), None);
        assert_eq!(label("/"), None);
    }

    #[test]
    fn a_model_in_the_path_is_read_with_its_slashes() {
        let model = |path: &str| of(&path.parse().unwrap()).unwrap().1;
        assert_eq!(model("/v2/models/a%2Fb/infer"), Some("a/b".to_owned()));
        assert_eq!(model("/v2/models/m/versions/3/infer"), Some("m".to_owned()));
        assert_eq!(model("/v1/completions"), None);
    }
}
