//! Ctrl-C and SIGTERM, as one token.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled by the first Ctrl-C or SIGTERM. A second one ends
/// the process at once with code 130, for a stop that takes too long.
///
/// # Errors
/// When the process may not install signal handlers.
pub fn token() -> io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        cancelled.cancel();
        either(&mut interrupt, &mut terminate).await;
        std::process::exit(130);
    });
    Ok(token)
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
