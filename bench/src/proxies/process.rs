//! A proxy's processes, and the processor time that they took.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};

/// How long one gets to end by itself.
const END_TIME: Duration = Duration::from_secs(5);

/// A program that was started here. Ends with this value.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
}

impl Process {
    /// Starts a program; what it writes goes to this one's standard error if `loud`.
    ///
    /// # Errors
    /// There is no such program.
    pub fn start(name: &str, command: &mut Command, loud: bool) -> Result<Self> {
        let output = || {
            if loud {
                Stdio::inherit()
            } else {
                Stdio::null()
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let started = command.stderr(output()).spawn();
        let child = started.with_context(|| format!("starting {name}: {command:?}"))?;
        Ok(Self {
            child,
            name: name.to_owned(),
        })
    }

    /// Fails if it has ended.
    ///
    /// # Errors
    /// It has.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} ended: {status} (--loud shows what it says)", self.name);
        }
        Ok(())
    }

    /// Time that it and its children have spent on a processor, their time in the
    /// kernel included. In steps of 10 ms on most systems.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn processor_time(&self) -> Result<Duration> {
        let own = self.child.id();
        let mut ticks = 0;
        let mut found = false;
        for entry in fs::read_dir("/proc")?.flatten() {
            // Processes that end meanwhile are none of ours.
            let Ok(text) = fs::read_to_string(entry.path().join("stat")) else {
                continue;
            };
            if let Some(stat) = Stat::parse(&text)
                && (stat.id == own || stat.parent == own)
            {
                found |= stat.id == own;
                ticks += stat.ticks;
            }
        }
        if !found {
            bail!("{} is not there any more", self.name);
        }
        let per_second = sysconf(SysconfVar::CLK_TCK)?.context("no clock ticks")?;
        Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let id = Pid::from_raw(self.child.id().cast_signed());
        let _ = kill(id, Signal::SIGTERM);
        let start = Instant::now();
        while start.elapsed() < END_TIME {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `/proc/ID/stat` says.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    id: u32,
    parent: u32,
    /// User and system time together.
    ticks: u64,
}

impl Stat {
    /// The program's name, in brackets, may hold anything; the rest is numbers.
    fn parse(text: &str) -> Option<Self> {
        let (start, rest) = text.rsplit_once(')')?;
        let id = start.split_once(' ')?.0.parse().ok()?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            id,
            parent: number(1)?.try_into().ok()?,
            ticks: number(11)? + number(12)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_read_whatever_the_name() {
        let text = "42 (a) b (c)) S 7 42 42 0 -1 4194560 1 2 3 4 50 25 8 9 20 0 1 0 100 0 0\n";
        let stat = Stat {
            id: 42,
            parent: 7,
            ticks: 75,
        };
        assert_eq!(Stat::parse(text), Some(stat));
        assert_eq!(Stat::parse("42 (a) S"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn time_is_that_of_the_process_and_its_children() {
        let mut shell = Command::new("sh");
        // A child that is busy for some seconds at most, and a parent that waits.
        shell.args([
            "-c",
            "sh -c 'i=0; while [ $i -lt 5000000 ]; do i=$((i + 1)); done' & trap \"kill $!\" TERM; wait",
        ]);
        let process = Process::start("sh", &mut shell, false).unwrap();
        let start = Instant::now();
        while process.processor_time().unwrap() < Duration::from_millis(50) {
            assert!(start.elapsed() < Duration::from_secs(5), "no time passed");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(process);
    }
}
