//! The outcome of a measurement, in words and as JSON.

use serde_json::{Value, json};

use super::little::Sizing;
use super::unusable::Unusable;

/// With fewer readings than these, an average is rough.
const FEW_READINGS: usize = 10;

/// The outcome in plain words.
#[must_use]
pub fn words(sizing: &Sizing) -> String {
    let Sizing {
        limit,
        waiting,
        rate,
        seconds,
        admitted,
        readings,
        cancelled,
        ..
    } = sizing;
    let wait = sizing.mean_wait * 1000.0;
    let whose = match (sizing.rank, sizing.ranks) {
        (Some(rank), 2..) => format!(", measured at rank {rank}, the fullest of {}", sizing.ranks),
        (Some(rank), _) => format!(", measured at rank {rank}"),
        (None, _) => String::new(),
    };
    let mut text = format!(
        "--engine-request-waiting-limit {limit}   (a candidate, per rank{whose})\n\n\
         On average {waiting:.2} requests were inside the engine without a first token (L), while\n\
         {rate:.2} a second were admitted (C): each waited {wait:.0} ms on average (L / C). So many and\n\
         no more need to wait there at this load; the next ones can wait at the gate.\n\n\
         measured  {seconds:.1} s, {readings} readings, {admitted} admitted, {cancelled} left before admission\n\
         it holds  for the load that was measured: the highest steady one that meets your latency\n\
         \u{20}         target, with the engine warm and few failures. It is a mean, no percentile\n"
    );
    for note in notes(sizing) {
        text += &format!("note      {note}\n");
    }
    text
}

/// The outcome for programs.
#[must_use]
pub fn json(sizing: &Sizing) -> Value {
    json!({
        "usable": true,
        "engine_request_waiting_limit": sizing.limit,
        "rank": sizing.rank,
        "ranks_measured": sizing.ranks,
        "mean_waiting": sizing.waiting,
        "admissions_per_second": sizing.rate,
        "mean_wait_seconds": sizing.mean_wait,
        "window_seconds": sizing.seconds,
        "readings": sizing.readings,
        "admitted": sizing.admitted,
        "cancelled": sizing.cancelled,
        "notes": notes(sizing),
    })
}

/// A refusal for programs.
#[must_use]
pub fn refusal_json(why: &Unusable) -> Value {
    json!({ "usable": false, "reason": why.key(), "message": why.to_string() })
}

fn notes(sizing: &Sizing) -> Vec<String> {
    let mut notes = Vec::new();
    if sizing.readings < FEW_READINGS {
        notes.push(format!(
            "rough: {} readings only; a longer --interval has more",
            sizing.readings
        ));
    }
    if sizing.cancelled > 0 {
        notes.push("clients that left made the wait look a little shorter".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_json_say_the_same() {
        let sizing = Sizing {
            rank: Some(3),
            ranks: 8,
            waiting: 11.9,
            rate: 50.0,
            mean_wait: 0.238,
            limit: 12,
            readings: 4,
            seconds: 60.0,
            admitted: 3000,
            cancelled: 1,
        };
        let text = words(&sizing);
        for part in [
            "limit 12 ",
            "rank 3, the fullest of 8",
            "11.90",
            "50.00",
            "238 ms",
            "rough",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let value = json(&sizing);
        assert_eq!(value["engine_request_waiting_limit"], 12);
        assert_eq!(value["notes"].as_array().map(Vec::len), Some(2));
        let refused = refusal_json(&Unusable::FewReadings(1));
        assert_eq!(
            (&refused["usable"], &refused["reason"]),
            (&json!(false), &json!("too_few_samples"))
        );
    }
}
