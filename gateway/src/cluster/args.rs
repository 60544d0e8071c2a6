//! The flags that have to do with NATS.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::ServerAddr;
use clap::Args;

use super::allow::AllowWorkers;
use super::codec::{LONGEST_TTL, SHORTEST_TTL};
use super::connect::NatsConfig;
use super::name::WorkerName;
use super::publish::PublishConfig;
use super::subscribe::SubscribeConfig;
use crate::cli::values::seconds;
use crate::proxy::engine::EngineUrl;

/// How NATS is reached, for `#[command(flatten)]`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "NATS")]
pub struct NatsArgs {
    /// A NATS server, may be repeated: nats://HOST:PORT, or tls:// to insist on TLS. A name
    /// and password may stand before the host, where other users of this machine see them.
    #[arg(long, value_name = "URL", value_delimiter = ',', value_parser = server)]
    nats: Vec<ServerAddr>,

    /// A file with NATS credentials, of a user's JWT and seed.
    #[arg(long, value_name = "FILE", requires = "nats")]
    nats_creds: Option<PathBuf>,

    /// A file with the certificates that the servers' are checked against, instead of
    /// this system's. With it TLS is insisted on.
    #[arg(long, value_name = "FILE", requires = "nats")]
    nats_ca: Option<PathBuf>,

    /// A file with the certificate that is shown to the servers.
    #[arg(long, value_name = "FILE", requires_all = ["nats", "nats_key"])]
    nats_cert: Option<PathBuf>,

    /// The file with its key.
    #[arg(long, value_name = "FILE", requires = "nats_cert")]
    nats_key: Option<PathBuf>,
}

impl NatsArgs {
    /// How to connect, if at all.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn config(self) -> io::Result<Option<NatsConfig>> {
        let files = [
            ("--nats-creds", &self.nats_creds),
            ("--nats-ca", &self.nats_ca),
            ("--nats-cert", &self.nats_cert),
            ("--nats-key", &self.nats_key),
        ];
        for (flag, file) in files {
            let Some(file) = file else { continue };
            std::fs::File::open(file).map_err(|error| {
                let said = format!("{flag} {}: {error}", file.display());
                io::Error::new(io::ErrorKind::InvalidInput, said)
            })?;
        }
        Ok((!self.nats.is_empty()).then(|| NatsConfig {
            servers: self.nats,
            credentials: self.nats_creds,
            ca: self.nats_ca,
            identity: self.nats_cert.zip(self.nats_key),
        }))
    }
}

/// What a worker says, for `#[command(flatten)]`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "NATS")]
pub struct PublishArgs {
    #[command(flatten)]
    nats: NatsArgs,

    /// What this worker is called, one of its kind: letters, digits, dashes and
    /// underscores. Left out, it is this host's name and the port of --listen.
    #[arg(long, value_name = "NAME", requires = "nats")]
    name: Option<WorkerName>,

    /// Where frontends send requests to; left out, the address of --listen.
    #[arg(long, value_name = "URL", requires = "nats")]
    announce_url: Option<EngineUrl>,

    /// Seconds of silence after which frontends take this worker for dead, unless it
    /// still answers them.
    #[arg(long, value_name = "SECONDS", default_value = "15", allow_negative_numbers = true, value_parser = ttl)]
    member_ttl: Duration,

    /// Seconds from one look at the load to the next. What has changed is said.
    #[arg(long, value_name = "SECONDS", default_value = "0.25", allow_negative_numbers = true, value_parser = interval)]
    load_interval: Duration,

    /// What Dynamo calls the engine in its own load events; frontends that follow those
    /// count them for this worker.
    #[arg(long, value_name = "ID", requires = "nats")]
    dynamo_worker_id: Option<u64>,
}

impl PublishArgs {
    /// What to say, if anything.
    ///
    /// # Errors
    /// A file that cannot be read, or no address that frontends could reach.
    pub fn config(self, listen: SocketAddr) -> io::Result<Option<PublishConfig>> {
        let Some(nats) = self.nats.config()? else {
            return Ok(None);
        };
        if self.announce_url.is_none() && listen.ip().is_unspecified() {
            let said = format!(
                "--nats needs --announce-url, or a --listen with an address that frontends can \
                 reach: {listen} is none"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, said));
        }
        Ok(Some(PublishConfig {
            name: self.name,
            url: self.announce_url,
            member_ttl: self.member_ttl,
            load_interval: self.load_interval,
            dynamo_worker_id: self.dynamo_worker_id,
            ..PublishConfig::new(nats)
        }))
    }
}

/// What a frontend hears, for `#[command(flatten)]`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "NATS")]
pub struct SubscribeArgs {
    #[command(flatten)]
    nats: NatsArgs,

    /// Where workers that announce themselves may be, may be repeated: a network, an
    /// address, a name or *.name, with a port or without, such as 10.0.0.0/8:8100. None
    /// else gets requests. Names are compared, not looked up.
    #[arg(
        long,
        value_name = "WHERE",
        value_delimiter = ',',
        requires = "nats",
        allow_negative_numbers = true
    )]
    allow_workers: Vec<AllowWorkers>,

    /// Follow Dynamo's load events too, at this subject, may be repeated, such as
    /// namespace.dynamo.component.backend.endpoint.generate.kv_metrics. Workers say by
    /// --dynamo-worker-id which are theirs.
    #[arg(long, value_name = "SUBJECT", requires = "nats")]
    dynamo_load_subject: Vec<String>,
}

impl SubscribeArgs {
    /// What to hear, if anything. `workers` says whether any are named otherwise.
    ///
    /// # Errors
    /// A file that cannot be read, or nobody who could be heard.
    pub fn config(self, workers: bool) -> io::Result<Option<SubscribeConfig>> {
        let Some(nats) = self.nats.config()? else {
            return Ok(None);
        };
        let invalid = |said: String| io::Error::new(io::ErrorKind::InvalidInput, said);
        if !workers && self.allow_workers.is_empty() {
            let said = "--nats needs --allow-workers, such as 10.0.0.0/8: no worker that \
                        announces itself would get requests, and no --worker is named";
            return Err(invalid(said.to_owned()));
        }
        for subject in &self.dynamo_load_subject {
            if !async_nats::Subject::from(subject.as_str()).is_valid() {
                return Err(invalid(format!(
                    "--dynamo-load-subject {subject:?} is no subject of NATS"
                )));
            }
        }
        Ok(Some(SubscribeConfig {
            allow: self.allow_workers,
            dynamo_subjects: self.dynamo_load_subject,
            ..SubscribeConfig::new(nats)
        }))
    }
}

fn server(text: &str) -> Result<ServerAddr, String> {
    let said = || "nats://HOST:PORT or tls://HOST:PORT".to_owned();
    let addr: ServerAddr = text.trim().parse().map_err(|_| said())?;
    let known = ["nats", "tls"].contains(&addr.scheme());
    (known && !addr.host().is_empty())
        .then_some(addr)
        .ok_or_else(said)
}

fn ttl(text: &str) -> Result<Duration, String> {
    seconds(text)
        .ok()
        .filter(|time| (SHORTEST_TTL..=LONGEST_TTL).contains(time))
        .ok_or_else(|| "seconds from 0.3 to 60".to_owned())
}

fn interval(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(20)..=Duration::from_secs(5);
    seconds(text)
        .ok()
        .filter(|time| range.contains(time))
        .ok_or_else(|| "seconds from 0.02 to 5".to_owned())
}
