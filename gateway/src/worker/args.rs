//! The flags of `tidegate worker`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::prefix::parse_prefix;
use super::routes::GateRoute;
use super::trust::Trust;
use crate::cli::values::{address, seconds};
use crate::cluster::PublishArgs;
use crate::config::args::parse_max_num_seqs;
use crate::config::{LimitArgs, Ranks};
use crate::policy::PolicyFlags;
use crate::proxy::engine::EngineUrl;

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
    /// The engine to protect: any server that speaks OpenAI's API. An https engine
    /// needs a certificate that this system trusts, or one in the file SSL_CERT_FILE.
    #[arg(long, value_name = "URL")]
    pub engine_url: EngineUrl,

    /// Where to listen, HTTP/1.1 and cleartext HTTP/2. Port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", allow_negative_numbers = true, default_value = "127.0.0.1:8100", value_parser = address)]
    pub listen: SocketAddr,

    /// Sequences in one batch of one rank. Left out, the engine is asked
    /// (SGLang, llama.cpp, TGI, and vLLM in its development mode tell), and once a
    /// minute asked again: limits that nobody set follow.
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
    /// body before its request is admitted. Beside it, each connection or stream
    /// holds up to 64 KiB that nobody has read yet.
    #[arg(long, value_name = "MIB", default_value_t = 64, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..=4095))]
    pub buffer_budget: u32,

    /// Seconds that running and queued requests get after SIGTERM.
    #[arg(long, value_name = "SECONDS", default_value = "30", allow_negative_numbers = true, value_parser = seconds)]
    pub drain_timeout: Duration,

    /// Seconds that a client may take: to send a request's head or keep a
    /// connection without one, to send more of a body that is waited for (it must
    /// keep up 1 KiB a second as well), and to take more of its answer.
    #[arg(long, value_name = "SECONDS", default_value = "60", allow_negative_numbers = true, value_parser = seconds)]
    pub client_timeout: Duration,

    /// The largest body of a gated request, in MiB. Larger ones get 413.
    #[arg(long, value_name = "MIB", default_value_t = 256, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_body: u32,

    /// Follow the field data_parallel_rank of JSON bodies too, as SGLang does.
    /// Bodies are then read before the gate is asked, within --buffer-budget; one
    /// that finds no room there for --client-timeout, or for a second once part of
    /// it is there, gets 503. So a client that sends Expect: 100-continue is told to
    /// go on before it is admitted, and may be refused after it has sent its body.
    #[arg(long)]
    pub rank_from_body: bool,

    /// Use connections to the engine again for gated requests too, which halves what
    /// a short request costs the worker. For engines that say so when they close one:
    /// vLLM, SGLang and TGI do. llama.cpp may close one behind a stream without a
    /// word, and the request that was just sent on it then gets 502.
    #[arg(long)]
    pub keep_engine_connections: bool,

    /// Which clients may claim a rank, a class or progress; alone, all of them.
    /// What others claim in headers is taken out of their requests; a rank in a body
    /// that is read for one (see --rank-from-body) gets 403. Progress is what a client
    /// asks for with x-admission-progress: 1: while its stream is queued, 200 and its
    /// position and expected wait in comments, and an event for whatever goes wrong.
    #[arg(long, value_enum, value_name = "CLIENTS", num_args = 0..=1, default_value = "loopback", default_missing_value = "all")]
    pub trust_admission_headers: Trust,

    /// Who may look at the page (/tidegate/; and / where nobody else has anything there)
    /// at --listen. At --admin-listen, where it then is instead, it is everyone who gets
    /// there, or no one.
    #[arg(long, value_enum, value_name = "CLIENTS", default_value = "loopback")]
    pub page: Trust,

    /// Where to answer /metrics, /health and /ready. They then move there, and
    /// those of the engine are passed through. Left out, --listen answers them.
    #[arg(long, value_name = "ADDRESS", allow_negative_numbers = true, value_parser = address)]
    pub admin_listen: Option<SocketAddr>,

    /// Show the metrics' older names too: dynamo_engine_request,
    /// dynamo_request_queue and dynamo_rejection_request_total.
    #[arg(long)]
    pub legacy_metrics: bool,

    /// What goes before each metric's name.
    #[arg(long, value_name = "PREFIX", default_value = tidegate::metrics::PREFIX, value_parser = parse_prefix)]
    pub metrics_prefix: String,

    /// The limits; what is left out follows the engine's size.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// The policy, if there is one.
    #[command(flatten)]
    pub policy: PolicyFlags,

    /// What is said over NATS.
    #[command(flatten)]
    pub cluster: PublishArgs,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::config::WorkerConfig;
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
            "--client-timeout",
            "5",
            "--max-body",
            "1",
            "--trust-admission-headers",
            "--rank-from-body",
            "--admin-listen",
            "127.0.0.1:0",
            "--legacy-metrics",
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
        assert_eq!(config.client_timeout, Duration::from_secs(5));
        assert_eq!(config.max_body, 1 << 20);
        assert_eq!(config.trust, Trust::All);
        assert!(config.rank_from_body && config.legacy_metrics);
        assert_eq!(
            config.admin_listen,
            Some(SocketAddr::from(([127, 0, 0, 1], 0)))
        );
        assert_eq!(config.gate_routes.len(), 1);
    }

    #[test]
    fn a_rank_in_a_body_needs_room_to_read_it() {
        let args = parse(&["--rank-from-body", "--buffer-budget", "0"]).unwrap();
        let error = WorkerConfig::from_args(args).unwrap_err().to_string();
        assert!(error.contains("--buffer-budget"), "{error}");
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
            (["--client-timeout", "0"], "above 0"),
            (["--max-body", "0"], "1..=4294967295"),
            (["--trust-admission-headers", "me"], "loopback"),
            (["--admin-listen", "x"], "such as 127.0.0.1:8100"),
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
