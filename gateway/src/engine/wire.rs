//! OpenAI's request and response bodies, as far as the engine needs them.

use std::time::{SystemTime, UNIX_EPOCH};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde::Deserialize;
use serde_json::{Value, json};

/// Which of the two generating calls it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Chat,
    Completion,
}

/// The fields that the engine reads; all others are accepted and ignored.
#[derive(Debug, Default, Deserialize)]
pub(super) struct GenerateBody {
    pub model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<Value>,
    #[serde(default)]
    pub stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    ignore_eos: Option<bool>,
    n: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct Message {
    #[serde(rename = "role")]
    _role: String,
    content: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// The body of an embeddings call.
#[derive(Debug, Deserialize)]
pub(super) struct EmbeddingBody {
    pub model: Option<String>,
    pub input: Value,
}

impl GenerateBody {
    /// Tokens of the prompt, estimated at four bytes of text each.
    ///
    /// # Errors
    /// What is missing or not supported, with the field's name.
    pub fn prompt_tokens(&self, kind: Kind) -> Result<u32, (&'static str, &'static str)> {
        if self.n.is_some_and(|n| n != 1) {
            return Err(("n", "this engine generates one choice per request"));
        }
        let tokens: u64 = match (kind, &self.messages, &self.prompt) {
            (Kind::Chat, None, _) => return Err(("messages", "field required")),
            (Kind::Completion, _, None) => return Err(("prompt", "field required")),
            (Kind::Chat, Some(messages), _) if messages.is_empty() => {
                return Err(("messages", "at least one message is required"));
            }
            (Kind::Chat, Some(messages), _) => messages
                .iter()
                .map(|m| m.content.as_ref().map_or(0, text_tokens))
                .sum(),
            (Kind::Completion, _, Some(prompt)) => {
                let inputs = inputs(prompt);
                if inputs.len() != 1 {
                    return Err(("prompt", "one prompt, as text or token ids, is expected"));
                }
                inputs.iter().sum()
            }
        };
        Ok(u32::try_from(tokens).unwrap_or(u32::MAX).max(1))
    }

    /// The client's limit on output tokens.
    pub fn max_tokens(&self) -> Option<u32> {
        self.max_completion_tokens.or(self.max_tokens)
    }

    pub fn ignore_eos(&self) -> bool {
        self.ignore_eos == Some(true)
    }

    pub fn include_usage(&self) -> bool {
        self.stream_options
            .as_ref()
            .is_some_and(|o| o.include_usage == Some(true))
    }
}

/// Tokens of message content: a string, or a list of parts with `text`.
fn text_tokens(content: &Value) -> u64 {
    let bytes: usize = match content {
        Value::String(text) => text.len(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .map(str::len)
            .sum(),
        _ => 0,
    };
    (bytes as u64).div_ceil(4)
}

/// Tokens of each input of a completion or embedding: text, a list of texts,
/// a list of token ids, or a list of such lists. Empty for anything else.
pub(super) fn inputs(value: &Value) -> Vec<u64> {
    match value {
        Value::String(_) => vec![text_tokens(value)],
        Value::Array(items) if items.is_empty() => vec![],
        Value::Array(items) if items.iter().all(Value::is_u64) => vec![items.len() as u64],
        Value::Array(items) if items.iter().all(|i| i.is_string() || i.is_array()) => {
            let each = |item: &Value| match item {
                Value::Array(ids) => ids.len() as u64,
                text => text_tokens(text),
            };
            items.iter().map(each).collect()
        }
        _ => vec![],
    }
}

/// An error body in OpenAI's shape.
pub(super) fn error_body(message: &str, kind: &str, param: Option<&str>, code: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}

/// Output tokens that the model would generate by itself: log-normal, with the
/// median (129) and 99th percentile (601) of Azure's public conversation trace.
pub(super) fn natural_length(seed: u64) -> u32 {
    let mut rng = StdRng::seed_from_u64(seed);
    let (a, b): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
    (129.0 * (0.66 * normal).exp()).round().clamp(1.0, 8192.0) as u32
}

const WORDS: [&str; 16] = [
    " the", " tide", " rises", " and", " a", " gate", " holds", " water", " back", " until",
    " there", " is", " room", " for", " every", " boat",
];

/// One answer: what its chunks and bodies have in common.
pub(super) struct Answer {
    kind: Kind,
    id: String,
    model: String,
    created: u64,
    rng: StdRng,
    pub prompt_tokens: u32,
    pub finish_reason: &'static str,
}

impl Answer {
    pub fn new(
        kind: Kind,
        id: u64,
        model: &str,
        prompt_tokens: u32,
        finish_reason: &'static str,
        seed: u64,
    ) -> Self {
        let prefix = match kind {
            Kind::Chat => "chatcmpl",
            Kind::Completion => "cmpl",
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            kind,
            id: format!("{prefix}-sim-{id}"),
            model: model.to_owned(),
            created: now.map_or(0, |now| now.as_secs()),
            rng: StdRng::seed_from_u64(seed),
            prompt_tokens,
            finish_reason,
        }
    }

    /// The text of the next token.
    pub fn word(&mut self) -> &'static str {
        WORDS.choose(&mut self.rng).copied().unwrap_or(" tide")
    }

    fn envelope(&self, streaming: bool, choices: Value) -> Value {
        let object = match (self.kind, streaming) {
            (Kind::Chat, true) => "chat.completion.chunk",
            (Kind::Chat, false) => "chat.completion",
            (Kind::Completion, _) => "text_completion",
        };
        json!({"id": self.id, "object": object, "created": self.created,
               "model": self.model, "choices": choices})
    }

    fn chunk(&self, delta: Value, text: &str, finish_reason: Option<&str>) -> Value {
        let choice = match self.kind {
            Kind::Chat => json!({"index": 0, "delta": delta, "logprobs": null,
                                 "finish_reason": finish_reason}),
            Kind::Completion => json!({"index": 0, "text": text, "logprobs": null,
                                       "finish_reason": finish_reason}),
        };
        self.envelope(true, json!([choice]))
    }

    /// The first chunk of a chat; completions have none.
    pub fn role_chunk(&self) -> Option<Value> {
        (self.kind == Kind::Chat)
            .then(|| self.chunk(json!({"role": "assistant", "content": ""}), "", None))
    }

    pub fn text_chunk(&self, text: &str) -> Value {
        self.chunk(json!({"content": text}), text, None)
    }

    pub fn finish_chunk(&self) -> Value {
        self.chunk(json!({}), "", Some(self.finish_reason))
    }

    pub fn usage_chunk(&self, output_tokens: u32) -> Value {
        let mut chunk = self.envelope(true, json!([]));
        chunk["usage"] = self.usage(output_tokens);
        chunk
    }

    /// The whole answer of a call that does not stream.
    pub fn whole(&self, text: &str, output_tokens: u32) -> Value {
        let choice = match self.kind {
            Kind::Chat => json!({"index": 0, "logprobs": null, "finish_reason": self.finish_reason,
                                 "message": {"role": "assistant", "content": text}}),
            Kind::Completion => json!({"index": 0, "text": text, "logprobs": null,
                                       "finish_reason": self.finish_reason}),
        };
        let mut body = self.envelope(false, json!([choice]));
        body["usage"] = self.usage(output_tokens);
        body
    }

    fn usage(&self, output_tokens: u32) -> Value {
        json!({"prompt_tokens": self.prompt_tokens, "completion_tokens": output_tokens,
               "total_tokens": u64::from(self.prompt_tokens) + u64::from(output_tokens)})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_come_in_four_shapes() {
        assert_eq!(inputs(&json!("12345")), [2]);
        assert_eq!(inputs(&json!(["1234", "12345"])), [1, 2]);
        assert_eq!(inputs(&json!([7, 8, 9])), [3]);
        assert_eq!(inputs(&json!([[7, 8, 9], [1]])), [3, 1]);
        for bad in [json!(null), json!([]), json!(5), json!([1, "a"])] {
            assert!(inputs(&bad).is_empty(), "{bad}");
        }
    }

    #[test]
    fn natural_lengths_have_the_stated_median() {
        let mut lengths: Vec<_> = (0..2001).map(natural_length).collect();
        lengths.sort_unstable();
        assert!((110..150).contains(&lengths[1000]), "{}", lengths[1000]);
        assert!((450..800).contains(&lengths[1980]), "{}", lengths[1980]);
    }
}
