//! The program in a pseudo-terminal, and what stands on its screen.

use std::io::{Read, Write};
use std::num::NonZero;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use vt100::Parser;

/// What is waited for at most.
const LONG: Duration = Duration::from_secs(5);

/// A terminal with the program in it, killed at the end if it still runs.
pub struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    screen: Arc<Mutex<Parser>>,
    /// How lines are read before the program ran.
    modes: String,
}

impl Terminal {
    /// Starts the program with a clean environment.
    pub fn start(columns: u16, lines: u16, arguments: &[&str]) -> Self {
        let pair = native_pty_system()
            .openpty(size(columns, lines))
            .expect("a pseudo-terminal");
        let modes = modes(&*pair.master);
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_tidegate"));
        command.env_clear();
        command.args(arguments);
        let child = pair.slave.spawn_command(command).expect("it starts");
        let screen = Arc::new(Mutex::new(Parser::new(some(lines), some(columns), 0)));
        let mut output = pair.master.try_clone_reader().expect("a reader");
        let seen = Arc::clone(&screen);
        // Ends with the last end of the terminal.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                seen.lock().expect("no panics").process(&bytes[..read]);
            }
        });
        Self {
            keyboard: pair.master.take_writer().expect("a writer"),
            master: pair.master,
            child,
            screen,
            modes,
        }
    }

    /// What stands there now.
    pub fn text(&self) -> String {
        let screen = self.screen.lock().expect("no panics");
        screen.screen().contents()
    }

    /// Waits until something stands there.
    pub fn shows(&self, what: &str, reached: impl Fn(&str) -> bool) {
        self.wait(what, || reached(&self.text()));
    }

    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("it reads");
        self.keyboard.flush().expect("it reads");
    }

    pub fn resize(&self, columns: u16, lines: u16) {
        let mut screen = self.screen.lock().expect("no panics");
        screen.screen_mut().set_size(some(lines), some(columns));
        let resized = self.master.resize(size(columns, lines));
        resized.expect("another size");
    }

    pub fn id(&self) -> u32 {
        self.child.process_id().expect("it runs")
    }

    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// Waits until the screen is the program's own, nobody's cursor is there, and keys are
    /// not echoed.
    pub fn is_taken(&self) {
        self.wait("the terminal is taken", || {
            let screen = self.screen.lock().expect("no panics");
            let screen = screen.screen();
            screen.alternate_screen() && screen.hide_cursor() && modes(&*self.master) != self.modes
        });
    }

    /// Waits for the end and gives its exit code; the terminal has to be as it was.
    pub fn left(&mut self) -> u32 {
        let start = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status.exit_code();
            }
            let late = start.elapsed() > LONG;
            assert!(!late, "it does not end: {}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        };
        self.wait("the screen is given back, with a cursor", || {
            let screen = self.screen.lock().expect("no panics");
            !screen.screen().alternate_screen() && !screen.screen().hide_cursor()
        });
        assert_eq!(modes(&*self.master), self.modes);
        code
    }

    fn wait(&self, what: &str, mut reached: impl FnMut() -> bool) {
        let start = Instant::now();
        while !reached() {
            let late = start.elapsed() > LONG;
            assert!(!late, "never: {what}; the screen is\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has ended already in most cases.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(columns: u16, lines: u16) -> PtySize {
    PtySize {
        rows: lines,
        cols: columns,
        ..PtySize::default()
    }
}

fn some(length: u16) -> NonZero<u16> {
    NonZero::new(length).expect("a terminal has room")
}

/// How the terminal reads lines: by itself or not, with an echo or not.
fn modes(master: &dyn MasterPty) -> String {
    let modes = master.get_termios().expect("a terminal's modes");
    format!("{:?}", modes.local_flags)
}
