//! The flags of `tidegate frontend`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use super::pick::RouterMode;
use crate::cli::values::{address, seconds};
use crate::cluster::SubscribeArgs;
use crate::monitor::{MonitorArgs, ThresholdArgs};
use crate::policy::FollowFlags;
use crate::proxy::engine::EngineUrl;
use crate::worker::Trust;
use crate::worker::routes::GateRoute;

/// Arguments of `tidegate frontend`.
#[derive(Clone, Debug, Args)]
pub struct FrontendArgs {
    /// A worker, or an engine without one; may be repeated. It gets requests once it
    /// answers. With --nats, workers announce themselves, and none need be named.
    #[arg(long = "worker", value_name = "URL", required_unless_present = "nats")]
    pub workers: Vec<EngineUrl>,

    /// Where to listen, HTTP/1.1 and cleartext HTTP/2. Port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", allow_negative_numbers = true, default_value = "127.0.0.1:8080", value_parser = address)]
    pub listen: SocketAddr,

    /// How a worker is picked, of those that serve the model and have room.
    #[arg(long, value_enum, value_name = "MODE", default_value_t)]
    pub router_mode: RouterMode,

    /// A further route to pass on, POST only, may be repeated. Its parts may be
    /// placeholders, as in /v1/audio/{kind}.
    #[arg(long = "route", value_name = "PATH")]
    pub routes: Vec<GateRoute>,

    /// Give refused clients no Retry-After.
    #[arg(long)]
    pub no_retry_after: bool,

    /// Seconds from one check of a worker's health to the next.
    #[arg(long, value_name = "SECONDS", default_value = "1", allow_negative_numbers = true, value_parser = seconds)]
    pub health_interval: Duration,

    /// Seconds that a worker may take to say that it is well. Two such failures in a
    /// row, or no connection, and it gets no requests until it answers again.
    #[arg(long, value_name = "SECONDS", default_value = "2", allow_negative_numbers = true, value_parser = seconds)]
    pub health_timeout: Duration,

    /// Seconds of silence after which a worker is given up, before its answer or
    /// within it. Off by default: a queued request may wait for minutes.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub worker_idle_timeout: Option<Duration>,

    /// The largest body of a request, in MiB. Larger ones get 413. A body is read before
    /// a worker is chosen: a client that sends Expect: 100-continue is told to go on at
    /// once, and may be refused after it has sent its body.
    #[arg(long, value_name = "MIB", default_value_t = 64, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=4095))]
    pub max_body: u32,

    /// Memory, in MiB, for the bodies of requests whose answer has not begun,
    /// together. One that finds no room there for --client-timeout, or for a second
    /// once part of it is there, gets 503.
    #[arg(long, value_name = "MIB", default_value_t = 512, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=4095))]
    pub buffer_budget: u32,

    /// Seconds that running requests get after SIGTERM.
    #[arg(long, value_name = "SECONDS", default_value = "30", allow_negative_numbers = true, value_parser = seconds)]
    pub drain_timeout: Duration,

    /// Seconds that a client may take: to send a request's head or keep a
    /// connection without one, to send more of a body (it must keep up 1 KiB a
    /// second as well), and to take more of its answer.
    #[arg(long, value_name = "SECONDS", default_value = "60", allow_negative_numbers = true, value_parser = seconds)]
    pub client_timeout: Duration,

    /// Which clients may claim a rank, a class or progress; alone, all of them.
    /// What others claim is taken out of their requests. Workers elsewhere have to
    /// trust the frontend in turn.
    #[arg(long, value_enum, value_name = "CLIENTS", num_args = 0..=1, default_value = "loopback", default_missing_value = "all")]
    pub trust_admission_headers: Trust,

    /// Who may look at the page (/tidegate/; and / where nobody else has anything there)
    /// at --listen. At --admin-listen, where it then is instead, it is everyone who gets
    /// there, or no one.
    #[arg(long, value_enum, value_name = "CLIENTS", default_value = "loopback")]
    pub page: Trust,

    /// Where to answer /metrics, /health, /ready and /busy_threshold instead of at
    /// --listen.
    #[arg(long, value_name = "ADDRESS", allow_negative_numbers = true, value_parser = address)]
    pub admin_listen: Option<SocketAddr>,

    /// What becomes of requests while all workers are busy.
    #[command(flatten)]
    pub policy: FollowFlags,

    /// From where on a worker gets no more requests.
    #[command(flatten)]
    pub thresholds: ThresholdArgs,

    /// How its load is known.
    #[command(flatten)]
    pub monitor: MonitorArgs,

    /// Who announces itself.
    #[command(flatten)]
    pub cluster: SubscribeArgs,
}
