//! The policy's file read again, on SIGHUP.

use std::io;
use std::path::Path;

use tidegate_policy::settings::Settings;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::read::read;

/// Returns once `shutdown` is cancelled. Until then a policy's `file` is read at each
/// SIGHUP, and what it says is handed on. One that is wrong changes nothing but the log,
/// which names line and key. Cancel safe.
///
/// # Errors
/// The process may not install signal handlers.
pub(crate) async fn reload_until(
    shutdown: &CancellationToken,
    file: Option<&Path>,
    follow: impl FnMut(Settings),
) -> io::Result<()> {
    let Some(file) = file else {
        shutdown.cancelled().await;
        return Ok(());
    };
    tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        failed = reload(file, follow) => failed,
    }
}

async fn reload(file: &Path, mut follow: impl FnMut(Settings)) -> io::Result<()> {
    let mut hangups = signal(SignalKind::hangup())?;
    while hangups.recv().await.is_some() {
        match read(file) {
            Ok(settings) => {
                let classes = settings.classes.all().len();
                follow(settings);
                info!(file = %file.display(), classes, "the policy was read again");
            }
            Err(error) => error!(%error, "the policy stays as it was"),
        }
    }
    std::future::pending().await
}
