//! Where it was measured, and what else went on there.

use std::process::Command;
use std::time::{Instant, SystemTime};
use std::{fmt, fs};

use serde::Serialize;

use crate::timing::spin;

/// The machine, as far as it tells.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// When the run ended.
    pub date: String,
    /// The commit that the working tree stands on, if git tells.
    pub commit: String,
    /// The processor's name.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// Whether it says that it is virtual.
    pub virtual_machine: bool,
    /// What went on meanwhile.
    pub noise: Noise,
}

/// What disturbs figures.
#[derive(Clone, Debug, Serialize)]
pub struct Noise {
    /// Runnable threads, mean over a minute, before the run.
    pub load_before: f64,
    /// The same at its end, this run included.
    pub load_after: f64,
    /// Share of the cores' time that the hypervisor gave to others, in percent.
    pub steal_percent: f64,
    /// Share of spin calibrations, before and after the run, in which two
    /// threads found two cores, in percent.
    pub both_cores_percent: f64,
    /// How long the run took, in seconds.
    pub seconds: f64,
}

/// Readings from before the run.
pub struct Watch {
    start: Instant,
    load: f64,
    ticks: Ticks,
    both_cores: f64,
}

#[derive(Clone, Copy)]
struct Ticks {
    all: f64,
    steal: f64,
}

const CALIBRATIONS: u32 = 40;

impl Machine {
    /// Begins to watch.
    pub fn watch() -> Watch {
        Watch {
            load: load(),
            ticks: ticks(),
            both_cores: spin::both_cores(CALIBRATIONS),
            start: Instant::now(),
        }
    }
}

impl Watch {
    /// The machine, and what went on since the watch began.
    pub fn end(self) -> Machine {
        let now = ticks();
        let all = (now.all - self.ticks.all).max(1.0);
        let seconds = self.start.elapsed().as_secs_f64();
        let both = (self.both_cores + spin::both_cores(CALIBRATIONS)) / 2.0;
        let cpuinfo = read("/proc/cpuinfo");
        let field = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split_once(':'));
            value
                .map_or("unknown", |(_, value)| value.trim())
                .to_owned()
        };
        Machine {
            date: httpdate::fmt_http_date(SystemTime::now()),
            commit: commit(),
            cpu: field("model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            virtual_machine: field("flags").split(' ').any(|flag| flag == "hypervisor"),
            noise: Noise {
                load_before: self.load,
                load_after: load(),
                steal_percent: 100.0 * (now.steal - self.ticks.steal) / all,
                both_cores_percent: 100.0 * both,
                seconds,
            },
        }
    }
}

fn commit() -> String {
    let told = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .output();
    let told = told.ok().filter(|told| told.status.success());
    let text = told.map(|told| String::from_utf8_lossy(&told.stdout).trim().to_owned());
    text.unwrap_or_else(|| "unknown".into())
}

/// One line that says where, when and in what company it was measured.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Noise {
            load_before,
            load_after,
            steal_percent,
            both_cores_percent,
            seconds,
        } = &self.noise;
        let kind = if self.virtual_machine {
            " (virtual)"
        } else {
            ""
        };
        write!(
            f,
            "{} at {}. {}, {} cores{kind}, Linux {}. {seconds:.0} s in all. Both cores were there in \
             {both_cores_percent:.0} % of the spin calibrations around the run; load {load_before:.1} \
             before and {load_after:.1} after, steal {steal_percent:.1} %.",
            self.date, self.commit, self.cpu, self.cores, self.kernel,
        )
    }
}

fn load() -> f64 {
    let text = read("/proc/loadavg");
    let first = text.split(' ').next();
    first.and_then(|load| load.parse().ok()).unwrap_or(f64::NAN)
}

/// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq,
/// softirq, steal, in ticks.
fn ticks() -> Ticks {
    let text = read("/proc/stat");
    let line = text.lines().next().unwrap_or_default();
    let numbers = line.split_whitespace().skip(1).take(8);
    let numbers: Vec<f64> = numbers.filter_map(|n| n.parse().ok()).collect();
    Ticks {
        all: numbers.iter().sum(),
        steal: numbers.get(7).copied().unwrap_or(0.0),
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
