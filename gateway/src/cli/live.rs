//! Status lines: updated in place on a terminal, plain ones elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::LazyLock;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// How often plain lines come where nothing can be updated in place.
pub const PLAIN_INTERVAL: Duration = Duration::from_secs(2);

/// How often lines are updated in place.
const LIVE_INTERVAL: Duration = Duration::from_millis(200);

/// One drawing area for the process, so that log lines can ask it to step aside.
static AREA: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Whether standard error is a terminal.
pub fn is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Runs `write` while nothing is drawn, so that what it writes stays whole.
pub fn aside<T>(write: impl FnOnce() -> T) -> T {
    AREA.suspend(write)
}

/// A block of status lines on standard error.
#[derive(Debug)]
pub struct Status {
    bars: Vec<ProgressBar>,
    in_place: bool,
}

impl Status {
    /// Begins a block of at most `lines` lines.
    pub fn new(lines: usize) -> Self {
        let in_place = is_terminal();
        let style = ProgressStyle::with_template("{msg}").expect("a fixed template");
        let bars = (0..if in_place { lines } else { 0 })
            .map(|_| AREA.add(ProgressBar::new_spinner().with_style(style.clone())))
            .collect();
        Status { bars, in_place }
    }

    /// How long to wait between two calls of [`Status::show`].
    pub fn interval(&self) -> Duration {
        if self.in_place {
            LIVE_INTERVAL
        } else {
            PLAIN_INTERVAL
        }
    }

    /// Shows the lines as they are now, in place or below the last ones.
    pub fn show(&mut self, lines: &[String]) {
        if self.in_place {
            for (bar, line) in self.bars.iter().zip(lines) {
                bar.set_message(line.clone());
                bar.tick();
            }
            return;
        }
        let mut err = std::io::stderr().lock();
        for line in lines {
            // Nobody may be reading; the work goes on.
            let _ = writeln!(err, "{line}");
        }
    }

    /// Takes the block away.
    pub fn clear(&mut self) {
        for bar in self.bars.drain(..) {
            bar.finish_and_clear();
            AREA.remove(&bar);
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.clear();
    }
}
