//! A connection to NATS that is there whenever it can be.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use percent_encoding::percent_decode_str;
use rand::Rng;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use super::counts::{Counts, Dropped};
use crate::cli::sparing::Sparing;
use crate::server::causes::causes;

/// Pauses between attempts: doubled from the first up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// How often the other end is asked whether it is still there; three in vain and the
/// connection is given up.
const PING: Duration = Duration::from_secs(2);

/// How long connecting may take.
const CONNECT_TIME: Duration = Duration::from_secs(3);

/// Messages that wait to be read; what comes beyond them is dropped.
const WAITING: usize = 16_384;

/// How NATS is reached.
#[derive(Clone, Debug)]
pub struct NatsConfig {
    /// Its servers.
    pub servers: Vec<ServerAddr>,
    /// A file with a user's credentials.
    pub credentials: Option<PathBuf>,
    /// A file with the certificates that the servers' are checked against.
    pub ca: Option<PathBuf>,
    /// Files with a certificate and its key, to be shown to the servers.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl NatsConfig {
    /// These servers, without credentials and certificates.
    #[must_use]
    pub fn new(servers: Vec<ServerAddr>) -> Self {
        Self {
            servers,
            credentials: None,
            ca: None,
            identity: None,
        }
    }

    /// The servers, without what is secret.
    fn shown(&self) -> String {
        let servers = self.servers.iter();
        let shown = servers.map(|addr| format!("{}:{}", addr.host(), addr.port()));
        shown.collect::<Vec<_>>().join(",")
    }

    async fn options(&self) -> std::io::Result<ConnectOptions> {
        let mut options = ConnectOptions::new();
        // The first server that names somebody speaks for all.
        let named = self.servers.iter().find_map(|addr| {
            let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
            Some((decoded(addr.username()?), addr.password().map(decoded)))
        });
        options = match named {
            Some((user, Some(password))) => options.user_and_password(user, password),
            Some((token, None)) => options.token(token),
            None => options,
        };
        if let Some(file) = &self.credentials {
            options = options.credentials_file(file).await?;
        }
        if let Some(file) = &self.ca {
            options = options
                .add_root_certificates(file.clone())
                .require_tls(true);
        }
        if let Some((certificate, key)) = &self.identity {
            options = options
                .add_client_certificate(certificate.clone(), key.clone())
                .require_tls(true);
        }
        Ok(options)
    }
}

/// Connects as `name`, however long it takes, and tells why it takes long. Later losses
/// are made good in the background. Cancel safe.
pub async fn connect(config: &NatsConfig, name: &str, counts: &Arc<Counts>) -> Client {
    let mut pause = FIRST_PAUSE;
    let mut told = None;
    loop {
        match attempt(config, name, counts).await {
            Ok(client) => {
                counts.connected(true);
                info!(servers = config.shown(), "NATS is reached");
                return client;
            }
            Err(why) => {
                if told.as_ref() != Some(&why) {
                    let servers = config.shown();
                    warn!(servers, why, "NATS is not reached: trying on without it");
                    told = Some(why);
                }
            }
        }
        sleep(shortened(pause)).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

async fn attempt(config: &NatsConfig, name: &str, counts: &Arc<Counts>) -> Result<Client, String> {
    let options = config.options().await.map_err(|error| causes(&error))?;
    let (counts, sparing) = (Arc::clone(counts), Arc::new(Sparing::default()));
    let options = options
        .name(name)
        .ping_interval(PING)
        .connection_timeout(CONNECT_TIME)
        .subscription_capacity(WAITING)
        .max_reconnects(None)
        .reconnect_delay_callback(reconnect_pause)
        .event_callback(move |event| {
            let (counts, sparing) = (Arc::clone(&counts), Arc::clone(&sparing));
            async move { heard(&event, &counts, &sparing) }
        });
    let connecting = options.connect(config.servers.as_slice());
    connecting.await.map_err(|error| causes(&error))
}

/// What happens to the connection.
fn heard(event: &Event, counts: &Counts, sparing: &Sparing) {
    match event {
        Event::Connected => {
            if counts.connected(true) {
                info!("NATS is reached again");
            }
        }
        Event::Disconnected | Event::Closed => {
            counts.connected(false);
            warn!("the connection to NATS is lost: going on without it");
        }
        Event::SlowConsumer(_) => {
            counts.dropped(Dropped::SlowConsumer);
            if let Some(left_out) = sparing.due(Instant::now()) {
                warn!(
                    left_out,
                    "messages come faster from NATS than they are read"
                );
            }
        }
        Event::ServerError(_) | Event::ClientError(_) => match sparing.due(Instant::now()) {
            Some(left_out) => warn!(error = %event, left_out, "NATS says no"),
            None => debug!(error = %event, "NATS says no"),
        },
        Event::LameDuckMode | Event::Draining => debug!(%event, "NATS"),
    }
}

/// The pause before the next attempt: short at first, and never the same for all, so
/// that a server that comes back is not asked by everybody at once.
fn reconnect_pause(attempts: usize) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << attempts.min(8));
    let longest = doubled.min(LAST_PAUSE);
    shortened(longest)
}

/// A pause of half its length or more, by chance.
fn shortened(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.5..=1.0))
}
