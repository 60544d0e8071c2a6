//! How bytes become a script of operations on the gate.

use arbitrary::{Arbitrary, Result, Unstructured};
use tidegate::Settings;

use crate::ops::{Op, Report, Script, Who, run};

/// Longer scripts find nothing that shorter ones do not, and take longer.
const MOST_OPS: usize = 400;

/// Runs the script that `bytes` stand for on the gate, the sequential gate and
/// a naive statement of the rules.
///
/// # Panics
/// They disagree, or an invariant is broken.
pub fn gate_ops(bytes: &[u8]) {
    let script = Script::arbitrary_take_rest(Unstructured::new(bytes));
    run::run(&script.expect("any bytes are a script"));
}

impl<'a> Arbitrary<'a> for Script {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let settings = settings(u)?;
        let mut ops = Vec::new();
        while !u.is_empty() && ops.len() < MOST_OPS {
            ops.push(op(u)?);
        }
        Ok(Script { settings, ops })
    }
}

/// One byte for the kind, then its arguments. Arrivals have more kinds, so that
/// random bytes fill the gate rather than empty it.
fn op(u: &mut Unstructured<'_>) -> Result<Op> {
    Ok(match byte(u)? % 16 {
        0 | 1 => Op::TryAdmit(Who(byte(u)?)),
        2..=5 => Op::Request(Who(byte(u)?)),
        6 => Op::EnterIfRoom(Who(byte(u)?)),
        7 => Op::GoneOnArrival(Who(byte(u)?)),
        8 | 9 => Op::Take(byte(u)?),
        10 => Op::Cancel(byte(u)?),
        11 => Op::FirstToken(byte(u)?),
        12 | 13 => Op::Release(byte(u)?),
        14 => Op::SetLimits(settings(u)?),
        _ => Op::Report(Report {
            ranks: byte(u)? % 12,
            max_num_seqs: limit(u)?,
        }),
    })
}

fn settings(u: &mut Unstructured<'_>) -> Result<Settings> {
    Ok(Settings {
        engine_request_limit: limit(u)?,
        engine_request_waiting_limit: limit(u)?,
        request_queue_limit: limit(u)?,
    })
}

/// 0 to 5, so that limits are reached; else unset.
fn limit(u: &mut Unstructured<'_>) -> Result<Option<u32>> {
    let value = u32::from(byte(u)? % 8);
    Ok((value <= 5).then_some(value))
}

/// 0 when the bytes have run out.
fn byte(u: &mut Unstructured<'_>) -> Result<u8> {
    u8::arbitrary(u)
}
