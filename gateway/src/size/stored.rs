//! Readings that a Prometheus server has stored: the raw samples of a window.

use std::collections::BTreeMap;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::live::{Plan, SourceError};
use super::reading::{Reading, ReadingError, names, reading};
use crate::scrape::exposition::Sample;
use crate::scrape::page::{Fetch, PageUrl};

/// How long the server may take.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Its answer, as far as it matters.
#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    /// Seconds since 1970, and a number written as text.
    values: Vec<(f64, String)>,
}

/// Asks the server for everything that it scraped in the last `plan.interval`.
/// `matchers` choose the worker, as in PromQL between braces.
///
/// # Errors
/// A server that does not answer, refuses the question, or has no such metrics.
pub async fn fetch(
    server: &PageUrl,
    matchers: &[String],
    plan: &Plan<'_>,
) -> Result<Vec<Reading>, SourceError> {
    let query = query(matchers, plan);
    let path = format!(
        "/api/v1/query?query={}",
        utf8_percent_encode(&query, NON_ALPHANUMERIC)
    );
    let wrong = |what: String| SourceError::Prometheus(server.to_string(), what);
    let page = Fetch::new(server.below(&path)).map_err(|error| wrong(error.to_string()))?;
    let text = page.text(ANSWER_TIME).await?;
    let answer: Answer = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("not the answer of a Prometheus server: {error}")))?;
    readings(answer.data.result, plan.prefix)
        .map_err(|error| SourceError::Reading(server.to_string(), error))
}

fn query(matchers: &[String], plan: &Plan<'_>) -> String {
    let names: Vec<&str> = names().collect();
    // A prefix has no character that means something in a regular expression.
    let mut all = vec![format!(
        "__name__=~\"{}({})\"",
        plan.prefix,
        names.join("|")
    )];
    all.extend_from_slice(matchers);
    format!(
        "{{{}}}[{}ms]",
        all.join(","),
        plan.interval.as_millis().max(1)
    )
}

/// All samples of one scrape bear the same time.
fn readings(series: Vec<Series>, prefix: &str) -> Result<Vec<Reading>, ReadingError> {
    let mut scrapes: BTreeMap<u64, Vec<Sample>> = BTreeMap::new();
    let mut workers = Vec::new();
    for Series {
        metric: mut labels,
        values,
    } in series
    {
        let name = labels.remove("__name__").unwrap_or_default();
        for (at, value) in values {
            // Casts saturate, and what is no number is 0.
            let sample = Sample {
                name: name.clone(),
                labels: labels.clone(),
                value: value.parse().unwrap_or(f64::NAN),
            };
            scrapes
                .entry((at * 1000.0) as u64)
                .or_default()
                .push(sample);
        }
        // Several workers are rarely scraped in the same millisecond.
        workers.push(Sample {
            name,
            labels,
            value: 0.0,
        });
    }
    // Without samples, too, this says what is missing.
    reading(Duration::ZERO, &workers, prefix)?;
    let each = scrapes.into_iter();
    each.map(|(at, samples)| reading(Duration::from_millis(at), &samples, prefix))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(instance: &str, shift: f64) -> Vec<Series> {
        let admit = |source: &str| format!(r#""request_admit_total","source":"{source}""#);
        let metrics = [
            r#""engine_request_waiting_count""#.to_owned(),
            r#""request_queue_count""#.to_owned(),
            r#""request_receive_total""#.to_owned(),
            admit("direct"),
            admit("queue"),
            r#""rejection_total","scope":"rank""#.to_owned(),
            r#""cancellation_total""#.to_owned(),
        ];
        let all: Vec<String> = metrics
            .iter()
            .map(|name| {
                let (first, second) = (10.5 + shift, 11.5 + shift);
                format!(
                    r#"{{"metric":{{"__name__":{name},"instance":"{instance}","dp_rank":"0"}},"values":[[{first},"1"],[{second},"2"]]}}"#
                )
            })
            .collect();
        serde_json::from_str(&format!("[{}]", all.join(","))).unwrap()
    }

    #[test]
    fn samples_of_one_time_are_one_reading() {
        let read = readings(series("a", 0.0), "").unwrap();
        let times: Vec<u128> = read.iter().map(|one| one.at.as_millis()).collect();
        assert_eq!(times, [10_500, 11_500]);
        assert!(
            read[1]
                .lanes
                .values()
                .all(|lane| lane.waiting == 2 && lane.received == 2)
        );
    }

    #[test]
    fn several_workers_or_none_are_no_readings() {
        let mut both = series("a", 0.0);
        both.extend(series("b", 0.2));
        assert!(matches!(
            readings(both, ""),
            Err(ReadingError::SeveralWorkers(_))
        ));
        assert!(matches!(
            readings(Vec::new(), ""),
            Err(ReadingError::Nothing(_))
        ));
    }

    #[test]
    fn the_question_names_metrics_matchers_and_window() {
        let plan = Plan {
            interval: Duration::from_secs(60),
            every: Duration::ZERO,
            prefix: "p_",
            rank: None,
        };
        let asked = query(&["job=\"x\"".to_owned()], &plan);
        assert!(
            asked.starts_with("{__name__=~\"p_(cancellation_total|engine_request_waiting_count|"),
            "{asked}"
        );
        assert!(asked.ends_with("\",job=\"x\"}[60000ms]"), "{asked}");
    }
}
