//! What happens at the terminal.

use std::io;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::crossterm::terminal;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How often it is looked for.
const KEYS: Duration = Duration::from_millis(100);

/// What was seen; other keys count for nothing.
#[derive(Debug)]
pub(super) enum Seen {
    /// Somebody wants to leave.
    Leave,
    /// The terminal has another size.
    Resized,
    /// The terminal can be read no more.
    Failed(io::Error),
}

/// Tells what is seen. The thread that looks ends soon after its guard.
pub(super) fn watch() -> (mpsc::Receiver<Seen>, DropGuard) {
    let (tell, told) = mpsc::channel(16);
    let over = CancellationToken::new();
    let guard = over.clone().drop_guard();
    std::thread::spawn(move || {
        // Asked for, since crossterm's own event is lost if a key comes with it.
        let mut size = terminal::size().ok();
        while !over.is_cancelled() {
            let seen = match event::poll(KEYS).and_then(|any| any.then(event::read).transpose()) {
                Ok(Some(Event::Key(key))) if leaves(key) => Seen::Leave,
                Ok(_) if terminal::size().ok() == size => continue,
                Ok(_) => {
                    size = terminal::size().ok();
                    Seen::Resized
                }
                Err(error) => Seen::Failed(error),
            };
            let last = !matches!(seen, Seen::Resized);
            if tell.blocking_send(seen).is_err() || last {
                return;
            }
        }
    });
    (told, guard)
}

fn leaves(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('c') => key.modifiers.contains(KeyModifiers::CONTROL),
        KeyCode::Char('q') | KeyCode::Esc => true,
        _ => false,
    }
}
