//! What a worker is made of, and the flags that say so.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use http::StatusCode;
use tidegate::Settings;

use super::error::ConfigError;
use super::known::KnownEngine;
use super::prefix::parse_prefix;
use super::refusal::{OVERLOADED, parse_status};
use super::routes::GateRoute;
use crate::cli::values::{address, seconds};
use crate::config::args::parse_max_num_seqs;
use crate::config::{LimitArgs, Ranks};
use crate::proxy::engine::EngineUrl;

/// Where the status of refusals is read from.
const STATUS_VARIABLE: &str = "DYN_HTTP_OVERLOAD_STATUS_CODE";

/// Which part of serving a worker does. Prefill and decode workers are gated
/// apart, and sized apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkerType {
    /// Reads prompts.
    Prefill,
    /// Generates tokens.
    Decode,
    /// Does both.
    Aggregated,
}

impl WorkerType {
    /// The metrics label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Aggregated => "aggregated",
        }
    }
}

/// Arguments of `tidegate worker`.
#[derive(Clone, Debug, Args)]
pub struct WorkerArgs {
    /// The engine to protect: any server that speaks OpenAI's API.
    #[arg(long, value_name = "URL")]
    pub engine_url: EngineUrl,

    /// Where to listen, HTTP/1.1 and cleartext HTTP/2. Port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", allow_negative_numbers = true, default_value = "127.0.0.1:8100", value_parser = address)]
    pub listen: SocketAddr,

    /// Sequences in one batch of one rank. Left out, the engine is asked
    /// (SGLang, llama.cpp and TGI tell).
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_max_num_seqs)]
    pub max_num_seqs: Option<u32>,

    /// The engine's data-parallel ranks, such as 0-7 or 0,2,4-6. Left out, the
    /// engine is asked; with --max-num-seqs alone there is one, 0.
    #[arg(long, value_name = "RANKS", allow_negative_numbers = true)]
    pub dp_ranks: Option<Ranks>,

    /// A further route to gate, POST only, may be repeated. Its parts may be
    /// placeholders, as in /v1/audio/{kind}.
    #[arg(long = "gate-route", value_name = "PATH")]
    pub gate_routes: Vec<GateRoute>,

    /// Label all metrics with what this worker does.
    #[arg(long, value_enum)]
    pub worker_type: Option<WorkerType>,

    /// Give refused clients no Retry-After.
    #[arg(long)]
    pub no_retry_after: bool,

    /// Seconds of silence after which an engine is given up, before its answer
    /// or within it; time in which the client sends does not count. Off by
    /// default: a long prompt may take minutes, and an engine that hangs then
    /// holds its slots until its clients leave.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub engine_idle_timeout: Option<Duration>,

    /// Memory, in MiB, for the bodies of queued requests together. 0 reads no
    /// body before its request is admitted.
    #[arg(long, value_name = "MIB", default_value_t = 64, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..=4095))]
    pub buffer_budget: u32,

    /// Seconds that running and queued requests get after SIGTERM.
    #[arg(long, value_name = "SECONDS", default_value = "30", allow_negative_numbers = true, value_parser = seconds)]
    pub drain_timeout: Duration,

    /// What goes before each metric's name.
    #[arg(long, value_name = "PREFIX", default_value = tidegate::metrics::PREFIX, value_parser = parse_prefix)]
    pub metrics_prefix: String,

    /// The limits; what is left out follows the engine's size.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Everything that makes a worker.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// The engine.
    pub engine_url: EngineUrl,
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Limits that someone set.
    pub settings: Settings,
    /// What is known of the engine without asking it.
    pub known_engine: KnownEngine,
    /// Routes to gate beside the known ones.
    pub gate_routes: Vec<GateRoute>,
    /// A label for all metrics.
    pub worker_type: Option<WorkerType>,
    /// The status of refusals.
    pub overload_status: StatusCode,
    /// Whether refusals say when to come back.
    pub retry_after: bool,
    /// How long an engine may be silent; `None` is for ever.
    pub engine_idle_timeout: Option<Duration>,
    /// Bytes for the bodies of queued requests together.
    pub buffer_budget: u32,
    /// How long requests may go on once the worker shuts down.
    pub drain_timeout: Duration,
    /// What goes before each metric's name.
    pub metrics_prefix: String,
}

impl WorkerConfig {
    /// The defaults of `tidegate worker`, on a free port of this machine.
    #[must_use]
    pub fn new(engine_url: EngineUrl) -> Self {
        Self {
            engine_url,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            settings: Settings::default(),
            known_engine: KnownEngine::default(),
            gate_routes: Vec::new(),
            worker_type: None,
            overload_status: default_status(),
            retry_after: true,
            engine_idle_timeout: None,
            buffer_budget: 64 << 20,
            drain_timeout: Duration::from_secs(30),
            metrics_prefix: tidegate::metrics::PREFIX.to_owned(),
        }
    }

    /// What the flags and this process's environment say. Logs the limits, and
    /// what was wrong with a variable.
    ///
    /// # Errors
    /// A limit out of its range, which only code that builds the arguments
    /// itself can bring about.
    pub fn from_args(args: WorkerArgs) -> Result<Self, ConfigError> {
        let resolved = args
            .limits
            .resolve(args.max_num_seqs)
            .map_err(|error| ConfigError::Setting(error.to_string()))?;
        resolved.log();
        Ok(Self {
            listen: args.listen,
            settings: resolved.settings,
            known_engine: KnownEngine {
                ranks: args.dp_ranks.map(|ranks| ranks.0),
                max_num_seqs: args.max_num_seqs,
            },
            gate_routes: args.gate_routes,
            worker_type: args.worker_type,
            overload_status: status_from_environment(),
            retry_after: !args.no_retry_after,
            engine_idle_timeout: args.engine_idle_timeout,
            buffer_budget: args.buffer_budget << 20,
            drain_timeout: args.drain_timeout,
            metrics_prefix: args.metrics_prefix,
            ..Self::new(args.engine_url)
        })
    }
}

fn default_status() -> StatusCode {
    StatusCode::from_u16(OVERLOADED).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
}

fn status_from_environment() -> StatusCode {
    let Some(value) = std::env::var_os(STATUS_VARIABLE) else {
        return default_status();
    };
    let value = value.to_string_lossy();
    parse_status(&value).unwrap_or_else(|why| {
        tracing::warn!("{STATUS_VARIABLE}={value:?} {why}; refusals say {OVERLOADED}");
        default_status()
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        worker: WorkerArgs,
    }

    fn parse(flags: &[&str]) -> Result<WorkerArgs, String> {
        let engine = ["worker", "--engine-url", "http://127.0.0.1:8000"];
        Cli::try_parse_from(engine.iter().chain(flags))
            .map(|cli| cli.worker)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn flags_become_a_configuration() {
        let args = parse(&[
            "--listen",
            "127.0.0.1:0",
            "--dp-ranks",
            "0-3",
            "--max-num-seqs",
            "8",
            "--request-queue-limit",
            "0",
            "--gate-route",
            "/v1/audio/speech",
            "--worker-type",
            "decode",
            "--no-retry-after",
            "--engine-idle-timeout",
            "2.5s",
        ])
        .unwrap();
        let config = WorkerConfig::from_args(args).unwrap();
        assert_eq!(config.known_engine.ranks, Some(vec![0, 1, 2, 3]));
        assert_eq!(config.known_engine.max_num_seqs, Some(8));
        assert_eq!(config.settings.request_queue_limit, Some(0));
        assert_eq!(
            config.engine_idle_timeout,
            Some(Duration::from_millis(2500))
        );
        assert_eq!(config.worker_type.map(WorkerType::label), Some("decode"));
        assert!(!config.retry_after);
        assert_eq!(config.gate_routes.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_said_with_the_range() {
        for (flags, said) in [
            (["--dp-ranks", "3-1"], "0-7"),
            (["--max-num-seqs", "0"], "from 1 to"),
            (["--gate-route", "/health"], "never gated"),
            (["--engine-idle-timeout", "0"], "above 0"),
            (["--engine-idle-timeout", "nan"], "above 0"),
            (["--engine-idle-timeout", "-1"], "above 0"),
            (["--drain-timeout", "-0.5"], "above 0"),
            (["--listen", "nowhere"], "such as 127.0.0.1:8100"),
            (["--listen", "-1"], "such as 127.0.0.1:8100"),
            (["--gate-route", "/{a}/{"], "a name in braces"),
            (["--metrics-prefix", "a-b"], "letters, digits"),
            (["--metrics-prefix", ""], "letters, digits"),
            (["--buffer-budget", "-1"], "0..=4095"),
            (["--buffer-budget", "4096"], "0..=4095"),
            (["--worker-type", "both"], "prefill"),
        ] {
            let error = parse(&flags).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        let error = Cli::try_parse_from(["worker", "--engine-url", "x"]).unwrap_err();
        assert!(
            error.to_string().contains("http://127.0.0.1:8000"),
            "{error}"
        );
    }
}
