//! The engine's HTTP routes.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answer::{self, Call};
use super::batch::Work;
use super::connection::Connection;
use super::live::{Event, Rank};
use super::misbehave::Misbehave;
use super::state::EngineState;
use super::wire::{Answer, EmbeddingBody, GenerateBody, Kind, error_body, inputs, natural_length};

/// Exact number of prompt tokens, instead of the estimate from the text.
pub const PROMPT_TOKENS_HEADER: &str = "x-sim-prompt-tokens";
/// Exact number of tokens the model generates before it ends by itself.
pub const OUTPUT_TOKENS_HEADER: &str = "x-sim-output-tokens";
/// Name of a [`Misbehave`] for this request.
pub const MISBEHAVE_HEADER: &str = "x-sim-misbehave";
/// Headers that pick the rank: vLLM's name, then Dynamo's.
pub const RANK_HEADERS: [&str; 2] = ["x-data-parallel-rank", "x-dynamo-dp-rank"];

const MAX_BODY_BYTES: usize = 32 << 20;

type Engine = State<Arc<EngineState>>;

pub(super) fn router(state: Arc<EngineState>) -> Router {
    let chat = |engine: Engine, connection, headers: HeaderMap, body: Bytes| {
        generate(Kind::Chat, engine, connection, headers, body)
    };
    let completion = |engine: Engine, connection, headers: HeaderMap, body: Bytes| {
        generate(Kind::Completion, engine, connection, headers, body)
    };
    Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completion))
        .route("/v1/embeddings", post(embeddings))
        .route("/v1/models", get(models))
        .route("/get_server_info", get(server_info))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .fallback(async || ApiError::new(StatusCode::NOT_FOUND, "no such route", None, "not_found"))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(state)
}

/// A refusal, sent as OpenAI's error body.
struct ApiError {
    status: StatusCode,
    message: String,
    param: Option<&'static str>,
    code: &'static str,
}

impl ApiError {
    fn new(
        status: StatusCode,
        message: impl Into<String>,
        param: Option<&'static str>,
        code: &'static str,
    ) -> Self {
        Self {
            status,
            message: message.into(),
            param,
            code,
        }
    }

    fn invalid(param: &'static str, message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            message,
            Some(param),
            "invalid_value",
        )
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let kind = match self.status.is_server_error() {
            true => "server_error",
            false => "invalid_request_error",
        };
        let body = error_body(&self.message, kind, self.param, self.code);
        (self.status, Json(body)).into_response()
    }
}

/// Syntax errors are 400, wrong or missing fields 422.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| {
        let status = match error.is_data() {
            true => StatusCode::UNPROCESSABLE_ENTITY,
            false => StatusCode::BAD_REQUEST,
        };
        ApiError::new(status, error.to_string(), None, "invalid_json")
    })
}

/// What a request's headers say to the simulation.
struct Hints {
    rank: Option<u32>,
    prompt_tokens: Option<u32>,
    output_tokens: Option<u32>,
    misbehave: Option<Misbehave>,
}

impl Hints {
    fn read(headers: &HeaderMap) -> Result<Self, ApiError> {
        let [vllm, dynamo] = RANK_HEADERS;
        let ranks = (number(headers, vllm)?, number(headers, dynamo)?);
        if let (Some(one), Some(other)) = ranks
            && one != other
        {
            return Err(ApiError::invalid(vllm, "two rank headers that differ"));
        }
        let misbehave = headers.get(MISBEHAVE_HEADER).map(|value| {
            let kind = value.to_str().ok().and_then(Misbehave::parse);
            kind.ok_or_else(|| ApiError::invalid(MISBEHAVE_HEADER, "unknown misbehaviour"))
        });
        Ok(Self {
            rank: ranks.0.or(ranks.1),
            prompt_tokens: number(headers, PROMPT_TOKENS_HEADER)?,
            output_tokens: number(headers, OUTPUT_TOKENS_HEADER)?,
            misbehave: misbehave.transpose()?,
        })
    }
}

fn number(headers: &HeaderMap, name: &'static str) -> Result<Option<u32>, ApiError> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let number = value
        .to_str()
        .ok()
        .and_then(|text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| {
        ApiError::invalid(
            name,
            format!("{name} takes an integer from 0 to {}", u32::MAX),
        )
    })
}

impl EngineState {
    fn check_ready(&self) -> Result<(), ApiError> {
        let loading = "the model is loading";
        self.ready()
            .then_some(())
            .ok_or_else(|| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, loading, None, "loading"))
    }

    fn check_model(&self, asked: Option<&str>) -> Result<(), ApiError> {
        match asked {
            Some(name) if name != self.config.model => Err(ApiError::new(
                StatusCode::NOT_FOUND,
                format!("the model `{name}` does not exist"),
                Some("model"),
                "model_not_found",
            )),
            _ => Ok(()),
        }
    }

    fn check_length(&self, tokens: u64) -> Result<(), ApiError> {
        let most = self.config.batch.max_model_len();
        (tokens <= most).then_some(()).ok_or_else(|| {
            ApiError::new(
                StatusCode::BAD_REQUEST,
                format!(
                    "this model's maximum context length is {most} tokens, {tokens} were asked"
                ),
                None,
                "context_length_exceeded",
            )
        })
    }

    /// The rank asked for; the one with the least load for none or an unknown one.
    fn pick(&self, rank: Option<u32>) -> &Rank {
        let asked = self.ranks.iter().find(|r| Some(r.id()) == rank);
        let least = || self.ranks.iter().min_by_key(|rank| rank.load());
        asked.or_else(least).unwrap_or(&self.ranks[0])
    }
}

async fn generate(
    kind: Kind,
    State(engine): Engine,
    Extension(connection): Extension<Connection>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Response> {
    let call = prepare(kind, &engine, connection, &headers, &body);
    match call.map_err(ApiError::into_response)? {
        (Prepared::Call(call), true) => Ok(answer::streamed(*call)),
        (Prepared::Call(call), false) => Ok(answer::whole(*call).await),
        (Prepared::Misbehave(how, connection), streaming) => {
            Ok(answer::without_work(how, streaming, &connection).await)
        }
    }
}

enum Prepared {
    Call(Box<Call>),
    Misbehave(Misbehave, Connection),
}

/// Checks and submits a generating request; also says whether it streams.
fn prepare(
    kind: Kind,
    engine: &EngineState,
    connection: Connection,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(Prepared, bool), ApiError> {
    engine.check_ready()?;
    let body: GenerateBody = parse(body)?;
    engine.check_model(body.model.as_deref())?;
    let hints = Hints::read(headers)?;
    let estimate = body.prompt_tokens(kind).map_err(|(param, message)| {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        ApiError::new(status, message, Some(param), "invalid_value")
    })?;
    let prompt_tokens = hints.prompt_tokens.unwrap_or(estimate).max(1);
    let asked = body.max_tokens();
    if asked == Some(0) {
        return Err(ApiError::invalid(
            "max_tokens",
            "max_tokens must be at least 1",
        ));
    }
    let (id, seed) = engine.next_id();
    let room = engine
        .config
        .batch
        .max_model_len()
        .saturating_sub(prompt_tokens.into());
    let most = asked
        .unwrap_or(u32::try_from(room).unwrap_or(u32::MAX))
        .max(1);
    engine.check_length(u64::from(prompt_tokens) + u64::from(most))?;
    let natural = hints
        .output_tokens
        .unwrap_or_else(|| natural_length(seed))
        .max(1);
    let output_tokens = match asked {
        Some(asked) if body.ignore_eos() => asked,
        _ => natural.min(most),
    };
    let finish_reason = match output_tokens < natural || body.ignore_eos() {
        true => "length",
        false => "stop",
    };
    let streaming = body.stream == Some(true);
    let misbehave = hints.misbehave.or_else(|| engine.misbehave(seed));
    if let Some(how) = misbehave.filter(|how| how.before_work()) {
        return Ok((Prepared::Misbehave(how, connection), streaming));
    }
    let work = Work {
        prompt_tokens,
        output_tokens,
    };
    let call = Call {
        request: engine.pick(hints.rank).submit(id, work),
        answer: Answer::new(
            kind,
            id,
            &engine.config.model,
            prompt_tokens,
            finish_reason,
            seed,
        ),
        include_usage: body.include_usage(),
        misbehave,
        connection,
    };
    Ok((Prepared::Call(Box::new(call)), streaming))
}

async fn embeddings(
    State(engine): Engine,
    Extension(connection): Extension<Connection>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Response> {
    let prepared = || {
        engine.check_ready()?;
        let body: EmbeddingBody = parse(&body)?;
        engine.check_model(body.model.as_deref())?;
        let hints = Hints::read(&headers)?;
        let inputs = inputs(&body.input);
        if inputs.is_empty() {
            return Err(ApiError::invalid(
                "input",
                "text, token ids, or a list of either",
            ));
        }
        let estimate = u32::try_from(inputs.iter().sum::<u64>()).unwrap_or(u32::MAX);
        let prompt_tokens = hints.prompt_tokens.unwrap_or(estimate).max(1);
        engine.check_length(prompt_tokens.into())?;
        Ok((hints, inputs.len(), prompt_tokens))
    };
    let (hints, count, prompt_tokens) = prepared().map_err(ApiError::into_response)?;
    let (id, seed) = engine.next_id();
    let misbehave = hints.misbehave.or_else(|| engine.misbehave(seed));
    if let Some(how) = misbehave.filter(|how| how.before_work()) {
        return Ok(answer::without_work(how, false, &connection).await);
    }
    let work = Work {
        prompt_tokens,
        output_tokens: 0,
    };
    let mut request = engine.pick(hints.rank).submit(id, work);
    if request.next().await != Some(Event::Finished) {
        return Ok(answer::stopping());
    }
    // The vectors mean nothing; they are of unit length and depend on the index.
    let data: Vec<Value> = (0..count)
        .map(|index| {
            let (sin, cos) = (index as f64).sin_cos();
            json!({"object": "embedding", "index": index, "embedding": [sin, cos]})
        })
        .collect();
    let body = json!({"object": "list", "data": data, "model": engine.config.model,
        "usage": {"prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens}});
    Ok(answer::finish(body, misbehave, connection).await)
}

async fn models(State(engine): Engine) -> Json<Value> {
    Json(json!({"object": "list", "data": [{
        "id": engine.config.model, "object": "model", "created": engine.started_unix,
        "owned_by": "tidegate", "max_model_len": engine.config.batch.max_model_len()}]}))
}

/// SGLang's route: how a worker learns ranks and `max_num_seqs`.
async fn server_info(State(engine): Engine) -> Result<Json<Value>, Response> {
    engine.check_ready().map_err(ApiError::into_response)?;
    let config = &engine.config;
    Ok(Json(json!({
        "model_path": config.model, "served_model_name": config.model,
        "dp_size": config.ranks, "data_parallel_start_rank": config.first_rank,
        "max_running_requests": config.batch.max_num_seqs,
        "max_prefill_tokens": config.batch.max_num_batched_tokens,
        "max_total_num_tokens": config.batch.max_model_len(),
        "page_size": config.batch.block_size})))
}

async fn health(State(engine): Engine) -> Result<(), Response> {
    engine.check_ready().map_err(ApiError::into_response)
}

async fn metrics(State(engine): Engine) -> Response {
    let headers = [(
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    )];
    (headers, engine.metrics.render(&engine.counts())).into_response()
}
