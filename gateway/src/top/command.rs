//! `tidegate top`.

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::draw::draw;
use super::watch::Watch;
use crate::cli::failure::Failure;
use crate::cli::output::print;
use crate::cli::values::seconds;
use crate::page::Snapshot;
use crate::scrape::page::PageUrl;

/// How often keys are looked for.
const KEYS: Duration = Duration::from_millis(100);

/// Columns and lines of a frame that goes to no terminal. Empty lines are left out.
const WIDTH: u16 = 120;
const HEIGHT: u16 = 200;

/// Arguments of `tidegate top`.
#[derive(Clone, Debug, Args)]
pub struct TopArgs {
    /// A worker or a frontend, or where its metrics are; may be repeated, for a
    /// frontend with its workers.
    #[arg(
        long = "url",
        value_name = "URL",
        default_value = "http://127.0.0.1:8100"
    )]
    pub urls: Vec<PageUrl>,

    /// Seconds from one look to the next.
    #[arg(long, value_name = "SECONDS", default_value = "1", allow_negative_numbers = true, value_parser = seconds)]
    pub interval: Duration,

    /// Look twice, an interval apart so that there are rates, print one frame as text,
    /// and end.
    #[arg(long)]
    pub once: bool,
}

/// Shows the servers until `q`, Esc, Ctrl-C or `stop`.
///
/// # Errors
/// Standard output is no terminal and `--once` was not given; or, with `--once`, a
/// server that does not answer.
pub async fn run(args: &TopArgs, stop: &CancellationToken) -> Result<(), Failure> {
    let urls: Vec<String> = args.urls.iter().map(ToString::to_string).collect();
    let of = urls.join(", ");
    let mut watch = Watch::new(&args.urls)?;
    if args.once {
        return once(&mut watch, &of, args.interval).await;
    }
    if !io::stdout().is_terminal() {
        return Err(Failure::usage(
            "this is no terminal: --once prints one frame as text",
        ));
    }
    let (mut keys, _pressing) = pressed();
    let mut terminal = ratatui::init();
    let result = async {
        let mut last: Option<Snapshot> = None;
        loop {
            let (shown, trouble) = watch.read().await;
            last = shown.or(last);
            let trouble = trouble.map(|trouble| trouble.to_string());
            terminal.draw(|frame| draw(frame, &of, last.as_ref(), trouble.as_deref()))?;
            tokio::select! {
                () = sleep(args.interval) => {}
                () = stop.cancelled() => return Ok(()),
                _ = keys.recv() => return Ok(()),
            }
        }
    };
    let result: io::Result<()> = result.await;
    ratatui::restore();
    Ok(result?)
}

async fn once(watch: &mut Watch, of: &str, interval: Duration) -> Result<(), Failure> {
    watch.read().await;
    sleep(interval).await;
    let (shown, trouble) = watch.read().await;
    if let Some(trouble) = trouble {
        return Err(trouble.into());
    }
    let mut terminal = Terminal::new(TestBackend::new(WIDTH, HEIGHT))?;
    terminal.draw(|frame| draw(frame, of, shown.as_ref(), None))?;
    let buffer = terminal.backend().buffer();
    let lines = buffer.content.chunks(usize::from(buffer.area.width));
    let text: Vec<String> = lines
        .map(|cells| {
            cells
                .iter()
                .map(ratatui::buffer::Cell::symbol)
                .collect::<String>()
        })
        .map(|line| line.trim_end().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    print(&(text.join("\n") + "\n"))?;
    Ok(())
}

/// Tells when somebody wants to leave. The thread that looks ends soon after its guard.
fn pressed() -> (mpsc::Receiver<()>, tokio_util::sync::DropGuard) {
    let (tell, told) = mpsc::channel(1);
    let over = CancellationToken::new();
    let guard = over.clone().drop_guard();
    std::thread::spawn(move || {
        while !over.is_cancelled() {
            if !matches!(event::poll(KEYS), Ok(true)) {
                continue;
            }
            let leaves = match event::read() {
                Ok(Event::Key(key)) => {
                    let ctrl_c = key.code == KeyCode::Char('c')
                        && key.modifiers.contains(KeyModifiers::CONTROL);
                    ctrl_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
                }
                Ok(_) => false,
                Err(_) => true,
            };
            if leaves {
                let _ = tell.blocking_send(());
                return;
            }
        }
    });
    (told, guard)
}
