//! The engine, kept alive and killed.

use std::net::SocketAddr;
use std::process::Command;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::program::Running;

fn start(addr: SocketAddr) -> Running {
    let addr = addr.to_string();
    let engine = Running::start(&[
        "engine",
        "--listen",
        &addr,
        "--ranks",
        "2",
        "--speed",
        "20",
        "--max-num-seqs",
        "8",
    ]);
    engine.wait_for("listening");
    engine
}

fn signal(engine: &Running, name: &str) {
    let id = engine.id().to_string();
    let sent = Command::new("kill").args([name, &id]).status();
    assert!(sent.expect("kill runs").success());
}

/// Runs an engine for `time`, freezes it now and then and kills it now and then;
/// gives a live one, and how often it was not.
pub fn keep(addr: SocketAddr, time: Duration) -> JoinHandle<(Running, u32)> {
    spawn(move || {
        let end = Instant::now() + time;
        let mut rng = StdRng::seed_from_u64(1);
        let mut engine = start(addr);
        let mut times = 0;
        loop {
            sleep(Duration::from_millis(rng.random_range(300..2000)));
            if Instant::now() > end {
                return (engine, times);
            }
            times += 1;
            let pause = Duration::from_millis(rng.random_range(0..1500));
            if rng.random_bool(0.5) {
                signal(&engine, "-STOP");
                sleep(pause);
                signal(&engine, "-CONT");
            } else {
                engine.stop("-KILL");
                sleep(pause / 2);
                engine = start(addr);
            }
        }
    })
}
