//! Recorded schedules, in two public formats.
//!
//! A file whose name ends in `.jsonl` is in the format of the Mooncake traces: a
//! JSON object a line, with `timestamp` in milliseconds, `input_length` and
//! `output_length` in tokens (other members are not used). Any other is in that
//! of the Azure LLM inference traces.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::load::planned::Planned;
use crate::load::trace::{self, TraceError};

const EXPECTED: &str = "an object with timestamp (milliseconds), input_length and output_length, \
     such as {\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500}";

#[derive(Deserialize)]
struct Row {
    timestamp: u64,
    input_length: u32,
    output_length: u32,
}

/// Reads a schedule. The first request is at 0.
///
/// # Errors
/// The file is unreadable or has no request, or a line is malformed.
pub fn read(path: &Path) -> Result<Vec<Planned>, TraceError> {
    if path
        .extension()
        .is_none_or(|extension| extension != "jsonl")
    {
        return trace::read_trace(path, 1.0);
    }
    let unreadable = |source| TraceError::Unreadable {
        path: path.display().to_string(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    parse(BufReader::new(file), unreadable)
}

fn parse(
    lines: impl BufRead,
    unreadable: impl Fn(io::Error) -> TraceError,
) -> Result<Vec<Planned>, TraceError> {
    let mut rows = Vec::new();
    for (index, line) in lines.lines().enumerate() {
        let line = line.map_err(&unreadable)?;
        if line.trim().is_empty() {
            continue;
        }
        let row: Row = serde_json::from_str(&line).map_err(|_| TraceError::Malformed {
            expected: EXPECTED,
            line: index + 1,
            text: line.chars().take(80).collect(),
        })?;
        rows.push(row);
    }
    rows.sort_by_key(|row| row.timestamp);
    let start = rows.first().ok_or(TraceError::Empty)?.timestamp;
    let planned = |row: Row| Planned {
        at: Duration::from_millis(row.timestamp - start),
        prompt_tokens: row.input_length,
        output_tokens: row.output_length.max(1),
        rank: None,
        leaves_after: None,
    };
    Ok(rows.into_iter().map(planned).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Result<Vec<Planned>, TraceError> {
        parse(text.as_bytes(), |source| TraceError::Unreadable {
            path: "memory".to_owned(),
            source,
        })
    }

    #[test]
    fn rows_become_requests_in_order() {
        let planned = parsed(
            "{\"timestamp\": 3500, \"input_length\": 7, \"output_length\": 0, \"hash_ids\": [1]}\n\
             {\"timestamp\": 500, \"input_length\": 6758, \"output_length\": 500}\n",
        )
        .expect("a trace");
        let sizes: Vec<_> = planned
            .iter()
            .map(|p| (p.prompt_tokens, p.output_tokens))
            .collect();
        assert_eq!(sizes, [(6758, 500), (7, 1)]);
        assert_eq!(planned[1].at, Duration::from_secs(3));
    }

    #[test]
    fn bad_lines_are_named() {
        let error = parsed("{\"timestamp\":0,\"input_length\":1,\"output_length\":1}\n{}\n");
        let error = error.expect_err("the second line says nothing");
        assert!(matches!(error, TraceError::Malformed { line: 2, .. }));
        assert!(error.to_string().contains("input_length"), "{error}");
        assert!(matches!(parsed("\n"), Err(TraceError::Empty)));
        assert!(read(Path::new("/nonexistent/t.jsonl")).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in any::<String>()) {
            let _ = parsed(&text);
        }
    }
}
