//! Log lines on standard error.

use std::io::{self, Write};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::live;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One readable line an event.
    Text,
    /// One JSON object an event.
    Json,
}

/// Sends events to standard error from now on. `RUST_LOG` chooses which; without
/// it, those of `default` and above. Malformed parts of `RUST_LOG` are named and
/// passed over. A second call changes nothing.
pub fn start(format: LogFormat, default: LevelFilter) {
    let filter = EnvFilter::builder()
        .with_default_directive(default.into())
        .from_env_lossy();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| LogLine);
    let _ = match format {
        LogFormat::Text => lines
            .with_target(false)
            .with_ansi(live::is_terminal())
            .try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}

/// Standard error, with whatever is being updated in place out of the way.
struct LogLine;

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        live::aside(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
