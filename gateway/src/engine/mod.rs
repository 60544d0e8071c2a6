//! A simulated inference engine.
//!
//! It answers OpenAI's calls as a continuous-batching LLM server does, without a
//! GPU: [`cost`] says how long a step takes, [`kv`] counts the cache, [`batch`]
//! decides what each step computes. These three are pure, know no clock and are
//! the same in a simulation. Around them [`Engine`] puts a task per rank, the
//! HTTP routes and the failures of [`Misbehave`].
//!
//! # What a request can say
//!
//! | header | effect |
//! | --- | --- |
//! | `x-sim-prompt-tokens` | exact prompt length; without it, four bytes of text a token |
//! | `x-sim-output-tokens` | tokens until the model ends by itself; without it, drawn by seed |
//! | `x-sim-misbehave` | name of a [`Misbehave`] |
//! | `x-data-parallel-rank`, `x-dynamo-dp-rank` | the rank; least loaded without one or for an unknown one |
//!
//! `max_tokens` cuts the output short; with `ignore_eos` exactly that many come.
//! Embeddings only prefill, and are plain numbers whatever the encoding asked for.
//!
//! # What it is made of
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`cost`], [`kv`], [`batch`] | a step's time, the cache, and what a step computes |
//! | `misbehave` | the ways to fail |
//! | `config` | what an engine is started with |
//! | `counts` | what a rank holds and has done |
//! | `metrics` | `/metrics` |
//! | `live` | a rank in real time: the task that drives a batch |
//! | `state` | what the request handlers share |
//! | `connection` | a connection that a request can have reset |
//! | `wire` | the bodies of OpenAI's calls |
//! | `answer` | how an answer leaves, or fails to |
//! | `api` | the routes |
//! | `server` | starting, serving and stopping |
//! | `args` | the command line |

mod answer;
mod api;
mod args;
pub mod batch;
mod config;
mod connection;
pub mod cost;
mod counts;
pub mod kv;
mod live;
mod metrics;
mod misbehave;
mod server;
mod state;
mod wire;

pub use api::{MISBEHAVE_HEADER, OUTPUT_TOKENS_HEADER, PROMPT_TOKENS_HEADER, RANK_HEADERS};
pub use args::{EngineArgs, run};
pub use config::EngineConfig;
pub use counts::RankCounts;
pub use misbehave::Misbehave;
pub use server::Engine;
