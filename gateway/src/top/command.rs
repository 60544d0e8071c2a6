//! `tidegate top`.

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use ratatui::backend::TestBackend;
use ratatui::{DefaultTerminal, Terminal};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::draw::{View, draw};
use super::keys::{self, Seen};
use super::say::server;
use super::watch::{Watch, WatchError};
use crate::cli::failure::Failure;
use crate::cli::output::print;
use crate::cli::values::seconds;
use crate::scrape::page::PageUrl;

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

/// Shows the servers until `q`, Esc, Ctrl-C or `stop`, and leaves the terminal as it was.
///
/// # Errors
/// Standard output is no terminal and `--once` was not given; the terminal fails; or,
/// with `--once`, a server that does not answer.
pub async fn run(args: &TopArgs, stop: &CancellationToken) -> Result<(), Failure> {
    let mut watch = Watch::new(&args.urls)?;
    let urls: Vec<String> = args.urls.iter().map(ToString::to_string).collect();
    let servers: Vec<&str> = urls.iter().map(|url| server(url)).collect();
    let view = View {
        of: servers.join(", "),
        interval: args.interval,
        shown: None,
        age: None,
        trouble: None,
    };
    if args.once {
        return once(&mut watch, view).await;
    }
    if !io::stdout().is_terminal() {
        return Err(Failure::usage(
            "this is no terminal: --once prints one frame as text",
        ));
    }
    let terminal = ratatui::try_init()?;
    let result = follow(&mut watch, view, terminal, stop).await;
    ratatui::restore();
    Ok(result?)
}

/// Draws at once, after each look, and whenever the terminal has another size.
async fn follow(
    watch: &mut Watch,
    mut view: View,
    mut terminal: DefaultTerminal,
    stop: &CancellationToken,
) -> io::Result<()> {
    let (mut keys, _looking) = keys::watch();
    let (mut wait, mut told) = (Duration::ZERO, None::<Instant>);
    loop {
        let pause = sleep(wait);
        let look = async {
            pause.await;
            watch.read().await
        };
        tokio::pin!(look);
        let (shown, trouble) = loop {
            terminal.draw(|frame| draw(frame, &view))?;
            tokio::select! {
                read = &mut look => break read,
                () = stop.cancelled() => return Ok(()),
                event = keys.recv() => match event {
                    Some(Seen::Resized) => {}
                    Some(Seen::Leave) | None => return Ok(()),
                    Some(Seen::Failed(error)) => return Err(error),
                },
            }
        };
        if shown.is_some() {
            (view.shown, told) = (shown, Some(Instant::now()));
            view.age = None;
        } else {
            view.age = told.map(|told| told.elapsed());
        }
        view.trouble = said(&trouble);
        wait = view.interval;
    }
}

/// All that is wrong, in one line.
fn said(trouble: &[WatchError]) -> Option<String> {
    let texts: Vec<String> = trouble.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

async fn once(watch: &mut Watch, mut view: View) -> Result<(), Failure> {
    watch.read().await;
    sleep(view.interval).await;
    let (shown, trouble) = watch.read().await;
    if let Some(trouble) = trouble.into_iter().next() {
        return Err(trouble.into());
    }
    view.shown = shown;
    let mut terminal = Terminal::new(TestBackend::new(WIDTH, HEIGHT))?;
    terminal.draw(|frame| draw(frame, &view))?;
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
