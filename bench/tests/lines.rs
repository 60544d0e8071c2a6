//! Which cache lines are written: direct entry on one rank writes none that
//! another rank's does, and a refusal none that another thread's does.
//!
//! Valgrind's `lackey` prints every store of the `ops` program; without valgrind
//! the tests say that they were skipped.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// Bytes of a cache line.
const LINE: u64 = 64;

/// What is so near to the main thread's stack is on it.
const STACK: u64 = 1 << 20;

/// Stores in each of the two phases, by line; `None` without valgrind.
fn stores(phases: &str) -> Option<[HashMap<u64, u64>; 2]> {
    let spawned = Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes"])
        .args([env!("CARGO_BIN_EXE_ops"), "lines", phases])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        eprintln!("SKIPPED: valgrind is not installed");
        return None;
    };
    let trace = BufReader::new(child.stderr.take().expect("piped"));
    // Where the marks are is known only at the end: keep what may matter.
    let mut all = Vec::new();
    for line in trace.lines() {
        let line = line.expect("the trace is text");
        let access = line.strip_prefix(" S ").or(line.strip_prefix(" M "));
        let address = access.and_then(|access| access.split_once(','));
        if let Some((address, _)) = address {
            all.push(u64::from_str_radix(address, 16).expect("an address"));
        }
    }
    let mut told = String::new();
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_to_string(&mut told).expect("two addresses");
    assert!(child.wait().expect("it was started").success(), "{told}");
    let told: Vec<_> = told
        .split_whitespace()
        .map(|address| u64::from_str_radix(address, 16).expect("an address"))
        .collect();
    let [mark, stack] = told[..] else {
        panic!("two addresses: {told:?}")
    };
    let mut phases: [HashMap<u64, u64>; 4] = Default::default();
    let mut marks = 0;
    for address in all {
        if address == mark {
            marks += 1;
        } else if (1..4).contains(&marks) && address.abs_diff(stack) > STACK {
            *phases[marks].entry(address / LINE).or_default() += 1;
        }
    }
    let [_, first, second, third] = phases;
    // Two threads mark each its own begin and end.
    Some([first, if marks == 4 { third } else { second }])
}

/// Lines that every operation of both phases wrote.
fn shared(phases: &str) -> Option<usize> {
    let [first, second] = stores(phases)?;
    let often = |stores: &HashMap<u64, u64>| stores.values().filter(|n| **n >= 100).count();
    assert!(
        often(&first) > 0 && often(&second) > 0,
        "nothing was written"
    );
    let both = first
        .iter()
        .filter(|(line, n)| **n >= 100 && second.get(line).is_some_and(|n| *n >= 100));
    Some(both.count())
}

#[test]
fn two_ranks_write_no_common_line() {
    if let Some(lines) = shared("two-ranks") {
        assert_eq!(lines, 0);
    }
}

#[test]
fn one_rank_twice_does_so_the_check_can_fail() {
    if let Some(lines) = shared("same-rank") {
        assert!(lines > 0);
    }
}

#[test]
fn refusals_by_two_threads_write_no_common_line() {
    if let Some(lines) = shared("two-refused") {
        assert_eq!(lines, 0);
    }
}

#[test]
fn owned_permits_of_two_threads_on_two_ranks_write_no_common_line() {
    if let Some(lines) = shared("two-owned") {
        assert_eq!(lines, 0);
    }
}
