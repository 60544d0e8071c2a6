//! Schedules read from recorded traces, in the format of the Azure LLM
//! inference traces: a header line, then `TIMESTAMP,ContextTokens,GeneratedTokens`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use thiserror::Error;

use super::planned::Planned;

const EXPECTED: &str =
    "TIMESTAMP,ContextTokens,GeneratedTokens, such as 2023-11-16 18:15:46.68,374,44";

/// Why a trace could not be read.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file could not be opened or read.
    #[error("the trace {path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A line that is not in the format.
    #[error("line {line} of the trace is {text:?}: expected {expected}")]
    Malformed {
        /// What is accepted, with an example.
        expected: &'static str,
        /// Its number, from 1.
        line: usize,
        /// What it says, at most 80 characters.
        text: String,
    },
    /// No request in it.
    #[error("the trace has no requests")]
    Empty,
}

/// Reads a trace file. The first request is at 0; all times are divided by
/// `speed`, which must be above 0.
///
/// # Errors
/// The file is unreadable or empty, or a line is malformed.
pub fn read_trace(path: &Path, speed: f64) -> Result<Vec<Planned>, TraceError> {
    let unreadable = |source| TraceError::Unreadable {
        path: path.display().to_string(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    parse_trace(BufReader::new(file), speed, unreadable)
}

fn parse_trace(
    lines: impl BufRead,
    speed: f64,
    unreadable: impl Fn(io::Error) -> TraceError,
) -> Result<Vec<Planned>, TraceError> {
    let mut rows = Vec::new();
    for (index, line) in lines.lines().enumerate() {
        let line = line.map_err(&unreadable)?;
        let text = line.trim();
        if text.is_empty()
            || (index == 0 && text.trim_start_matches('\u{feff}').starts_with("TIMESTAMP"))
        {
            continue;
        }
        let row = parse_row(text).ok_or_else(|| TraceError::Malformed {
            expected: EXPECTED,
            line: index + 1,
            text: text.chars().take(80).collect(),
        })?;
        rows.push(row);
    }
    // Clocks jump: a trace need not be in order, and the earliest row is its start.
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let start = rows.first().ok_or(TraceError::Empty)?.0;
    let planned = rows
        .into_iter()
        .map(|(at, prompt_tokens, output_tokens)| Planned {
            at: Duration::try_from_secs_f64((at - start) / speed).unwrap_or(Duration::MAX),
            prompt_tokens,
            output_tokens,
            rank: None,
            leaves_after: None,
        });
    Ok(planned.collect())
}

fn parse_row(text: &str) -> Option<(f64, u32, u32)> {
    let mut fields = text.split(',').map(str::trim);
    let at = parse_timestamp(fields.next()?)?;
    let prompt_tokens = fields.next()?.parse().ok()?;
    let output_tokens: u32 = fields.next()?.parse().ok()?;
    fields
        .next()
        .is_none()
        .then_some((at, prompt_tokens, output_tokens.max(1)))
}

/// Seconds since 1970 of `YYYY-MM-DD HH:MM:SS[.fraction]`. A double holds
/// today's to well under a microsecond.
fn parse_timestamp(text: &str) -> Option<f64> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let mut parts = date.split('-');
    let (year, month, day): (i64, i64, i64) = (
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
    );
    let mut clock = time.split(':');
    let (hour, minute): (u32, u32) = (clock.next()?.parse().ok()?, clock.next()?.parse().ok()?);
    let second: f64 = clock.next()?.parse().ok()?;
    let valid = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && (0.0..61.0).contains(&second)
        && parts.next().is_none()
        && clock.next().is_none();
    valid.then(|| {
        let days = days_since_1970(year, month, day) as f64;
        days * 86_400.0 + f64::from(hour * 3600 + minute * 60) + second
    })
}

/// Days of the Gregorian calendar. Years are counted from March, so that the
/// day that comes and goes is the last one of a year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let before = 365 * year + year / 4 - year / 100 + year / 400;
    before + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str, speed: f64) -> Result<Vec<Planned>, TraceError> {
        let unreadable = |source| TraceError::Unreadable {
            path: "memory".into(),
            source,
        };
        parse_trace(text.as_bytes(), speed, unreadable)
    }

    #[test]
    fn rows_become_offsets_and_sizes() {
        let text = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
                    2023-11-16 23:59:59.5000000,374,44\r\n\
                    2023-11-17 00:00:01.0000000,396,0\r\n";
        let planned = parse(text, 2.0).expect("a trace");
        assert_eq!(planned.len(), 2);
        assert_eq!(
            (planned[0].at, planned[0].prompt_tokens),
            (Duration::ZERO, 374)
        );
        assert_eq!(planned[1].at, Duration::from_millis(750));
        assert_eq!(planned[1].output_tokens, 1);
    }

    #[test]
    fn rows_out_of_order_are_sorted() {
        let text = "2023-11-16 18:00:05,1,1\n2023-11-16 18:00:00,2,2\n";
        let planned = parse(text, 1.0).expect("a trace");
        assert_eq!(
            planned.iter().map(|p| p.prompt_tokens).collect::<Vec<_>>(),
            [2, 1]
        );
        assert_eq!(planned[1].at, Duration::from_secs(5));
    }

    #[test]
    fn bad_lines_are_named() {
        for bad in [
            "2023-11-16 18:15:46,1",
            "now,1,2",
            "2023-11-16 18:15:46,-1,2",
            "2023-13-16 18:15:46,1,2",
            "2023-11-16 18:15:NaN,1,2",
            "2023-11-16 18:15:46,1,2,3",
        ] {
            let text = format!("TIMESTAMP,ContextTokens,GeneratedTokens\n{bad}\n");
            let error = parse(&text, 1.0).unwrap_err();
            assert!(
                matches!(error, TraceError::Malformed { line: 2, .. }),
                "{bad}: {error}"
            );
        }
        assert!(matches!(parse("", 1.0), Err(TraceError::Empty)));
        let missing = read_trace(Path::new("/nonexistent/trace.csv"), 1.0).unwrap_err();
        assert!(
            missing.to_string().contains("/nonexistent/trace.csv"),
            "{missing}"
        );
    }

    #[test]
    fn days_follow_the_calendar() {
        assert_eq!(days_since_1970(1970, 1, 1), 0);
        assert_eq!(days_since_1970(2000, 3, 1), 11_017);
        assert_eq!(
            days_since_1970(2024, 2, 29) + 1,
            days_since_1970(2024, 3, 1)
        );
        assert_eq!(
            days_since_1970(2100, 2, 28) + 1,
            days_since_1970(2100, 3, 1)
        );
    }

    /// The recorded trace, where there is one: `TIDEGATE_TRACES` names the folder.
    #[test]
    fn the_recorded_trace_reads_whole() {
        let Some(folder) = std::env::var_os("TIDEGATE_TRACES") else {
            eprintln!(
                "SKIPPED: set TIDEGATE_TRACES to a folder with azure/AzureLLMInferenceTrace_conv.csv"
            );
            return;
        };
        let path = Path::new(&folder).join("azure/AzureLLMInferenceTrace_conv.csv");
        let planned = read_trace(&path, 1.0).expect("the trace");
        assert_eq!(planned.len(), 19_366);
        let last = planned.last().expect("rows").at.as_secs();
        assert!((3500..3510).contains(&last), "{last}");
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in any::<String>()) {
            let _ = parse(&text, 1.0);
        }
    }
}
