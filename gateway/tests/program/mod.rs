//! The program, started and watched as a person would.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The program with a clean environment.
pub fn tidegate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

pub fn output(arguments: &[&str]) -> Output {
    tidegate(arguments).output().expect("the program runs")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// A program that was started, killed at the end if it still runs. What it
/// says on either stream is read all the time, so that it never blocks.
pub struct Running {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Running {
    pub fn start(arguments: &[&str]) -> Self {
        Self::spawn(tidegate(arguments))
    }

    /// The same, prepared by the test.
    pub fn spawn(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let streams: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().expect("piped")),
            Box::new(child.stderr.take().expect("piped")),
        ];
        let readers = streams.map(|stream| {
            let lines = Arc::clone(&lines);
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    lines.lock().expect("no panics").push(line);
                }
            })
        });
        Running {
            child,
            lines,
            readers: readers.into(),
        }
    }

    /// The first line so far that contains `part`.
    pub fn line(&self, part: &str) -> Option<String> {
        let lines = self.lines.lock().expect("no panics");
        lines.iter().find(|line| line.contains(part)).cloned()
    }

    /// Every line so far.
    pub fn all(&self) -> String {
        self.lines.lock().expect("no panics").join("\n")
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The numbers of each line that begins with `start` and has only numbers
    /// after its first word.
    pub fn rows(&self, start: &str) -> Vec<Vec<u64>> {
        let lines = self.lines.lock().expect("no panics");
        let rows = lines.iter().filter(|line| line.starts_with(start));
        let numbers = |row: &String| -> Option<Vec<u64>> {
            row.split_whitespace()
                .skip(1)
                .map(|word| word.parse().ok())
                .collect()
        };
        rows.filter_map(numbers).collect()
    }

    pub fn wait_for(&self, part: &str) -> String {
        self.wait_long_for(&[part], LONG)
    }

    /// The same for any of these, and for what takes its time, as somebody else's program
    /// may.
    pub fn wait_long_for(&self, parts: &[&str], long: Duration) -> String {
        let any = || parts.iter().find_map(|part| self.line(part));
        poll(long, any).unwrap_or_else(|| {
            panic!(
                "no line with any of {parts:?} in {:#?}",
                self.lines.lock().expect("no panics")
            )
        })
    }

    /// Sends a signal by name, waits for the exit and for the last lines.
    pub fn stop(&mut self, signal: &str) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([signal, &id])
            .status()
            .expect("kill runs");
        assert!(sent.success());
        self.ended()
    }

    pub fn ended(&mut self) -> Option<i32> {
        let status = poll(LONG, || self.child.try_wait().expect("a child")).expect("it ends");
        for reader in self.readers.drain(..) {
            reader.join().expect("no panics");
        }
        status.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already in most cases.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks again and again, for 10 s at most.
/// How long a program of ours may take to say or do something.
const LONG: Duration = Duration::from_secs(10);

fn poll<T>(long: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + long;
    loop {
        let answer = ask();
        if answer.is_some() || Instant::now() > deadline {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
