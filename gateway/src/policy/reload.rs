//! The policy's file read again, on SIGHUP.

use std::io;
use std::path::Path;

use tidegate_policy::settings::Settings;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info};

use super::read::read;

/// Reads the file at each SIGHUP and hands on what it says. A file that is wrong
/// changes nothing but the log, which names line and key. Runs until it is dropped;
/// cancel safe.
///
/// # Errors
/// The process may not install signal handlers.
pub(crate) async fn reload(file: &Path, mut follow: impl FnMut(Settings)) -> io::Result<()> {
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
