//! `tidegate config`: what the flags and the environment amount to.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;
use thiserror::Error;
use tidegate::LimitError;

use super::args::{LimitArgs, parse_max_num_seqs};
use super::ranks::{Ranks, parse_ranks, show_ranks};
use super::resolve::{Effective, Resolved, Source};
use super::setting::{OutOfRange, Setting};

/// Arguments of `tidegate config`.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// What the engine would report: sequences per rank in one batch. Moves the defaults.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_max_num_seqs)]
    pub max_num_seqs: Option<u32>,

    /// The engine's data-parallel ranks, such as 0-7 or 0,2,4-6.
    #[arg(
        long, value_name = "RANKS", default_value = "0", allow_negative_numbers = true,
        value_parser = |text: &str| parse_ranks(text).map(Ranks)
    )]
    pub dp_ranks: Ranks,

    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,

    /// The limits, exactly as `tidegate worker` takes them.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Resolves and renders: a table that explains itself, or JSON.
///
/// # Errors
/// As [`LimitArgs::resolve`]; or the limits of all ranks together are too large.
pub fn render(args: &ConfigArgs) -> Result<String, Unusable> {
    let resolved = args.limits.resolve(args.max_num_seqs)?;
    resolved
        .settings
        .resolve_for(args.dp_ranks.0.len(), args.max_num_seqs)?;
    Ok(if args.json {
        as_json(&resolved, &args.dp_ranks.0, args.max_num_seqs)
    } else {
        as_table(&resolved, &args.dp_ranks.0, args.max_num_seqs)
    })
}

/// Why there are no limits to be shown.
#[derive(Debug, Error)]
pub enum Unusable {
    /// A setting is out of its range.
    #[error(transparent)]
    Setting(#[from] OutOfRange),
    /// A limit is, for so many ranks.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// The worker's total of a limit per rank.
fn total(limit: &Effective, ranks: &[u32]) -> u64 {
    u64::from(limit.value) * ranks.len() as u64
}

fn as_json(resolved: &Resolved, ranks: &[u32], max_num_seqs: Option<u32>) -> String {
    let settings: serde_json::Map<_, _> = resolved
        .limits
        .iter()
        .map(|limit| {
            let (kind, name) = match limit.source {
                Source::Flag => ("flag", Some(limit.setting.flag())),
                Source::Environment(name) => ("environment", Some(name)),
                Source::OlderName(name) => ("older_name", Some(name)),
                Source::Reported => ("reported", None),
                Source::Fallback => ("fallback", None),
            };
            let value = json!({
                "per_rank": limit.value,
                "worker": total(limit, ranks),
                "source": { "kind": kind, "name": name },
            });
            (limit.setting.key().to_owned(), value)
        })
        .collect();
    let warnings: Vec<String> = resolved.warnings.iter().map(ToString::to_string).collect();
    let all = json!({
        "ranks": ranks,
        "max_num_seqs": max_num_seqs,
        "settings": settings,
        "warnings": warnings,
    });
    format!("{all:#}\n")
}

fn as_table(resolved: &Resolved, ranks: &[u32], max_num_seqs: Option<u32>) -> String {
    let mut out = String::new();
    let (noun, count) = (if ranks.len() == 1 { "rank" } else { "ranks" }, ranks.len());
    let _ = writeln!(
        out,
        "Limits of a worker with {count} data-parallel {noun} ({})\n",
        show_ranks(ranks)
    );

    let source = |limit: &Effective| match (limit.source, max_num_seqs) {
        (Source::Flag, _) => format!("flag {}", limit.setting.flag()),
        (Source::Reported, Some(seqs)) => match limit.setting {
            Setting::RequestQueueLimit => format!("2 x the engine's max_num_seqs, {seqs}"),
            _ => format!("the engine's max_num_seqs, {seqs}"),
        },
        (source, _) => source.to_string(),
    };
    let _ = writeln!(
        out,
        "{:<30}{:>10}{:>12}   from",
        "setting", "per rank", "worker"
    );
    for limit in &resolved.limits {
        let _ = writeln!(
            out,
            "{:<30}{:>10}{:>12}   {}",
            limit.setting.title(),
            limit.value,
            total(limit, ranks),
            source(limit)
        );
    }

    if !resolved.warnings.is_empty() {
        let _ = writeln!(out, "\nWarnings");
        for warning in &resolved.warnings {
            let _ = writeln!(out, "  {warning}");
        }
    }
    if resolved
        .limits
        .iter()
        .any(|limit| limit.source == Source::Fallback)
    {
        let _ = writeln!(
            out,
            "\nA fallback is too large to protect an engine. It stands until the engine reports its\n\
             max_num_seqs; to see what follows from a report, add --max-num-seqs."
        );
    }

    let _ = writeln!(out, "\nWhat they bound");
    for setting in Setting::ALL {
        let _ = writeln!(out, "  {:<30}{}", setting.title(), setting.meaning());
    }
    let _ = writeln!(out, "\nWhere they are read: the first valid one counts");
    for setting in Setting::ALL {
        let older = setting
            .older_name()
            .map_or(String::new(), |name| format!(", then {name}"));
        let _ = writeln!(
            out,
            "  {}, then {}{older}",
            setting.flag(),
            setting.environment()
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::resolve::resolve;
    use tidegate::Settings;

    fn example() -> Resolved {
        let flags = Settings {
            engine_request_limit: Some(64),
            ..Settings::default()
        };
        let environment = |name: &str| {
            (name == "DYN_BACKEND_ADMISSION_REQUEST_QUEUE_LIMIT").then(|| "lots".to_owned())
        };
        resolve(&flags, environment, Some(256)).expect("valid flags")
    }

    #[test]
    fn the_table_shows_values_totals_sources_and_warnings() {
        let table = as_table(&example(), &[0, 1], Some(256));
        let row = |title: &str| {
            let line = table.lines().find(|l| l.starts_with(title)).expect("a row");
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            row("engine request limit"),
            "engine request limit 64 128 flag --engine-request-limit"
        );
        assert_eq!(
            row("request queue limit"),
            "request queue limit 512 1024 2 x the engine's max_num_seqs, 256"
        );
        assert!(
            table.contains("DYN_BACKEND_ADMISSION_REQUEST_QUEUE_LIMIT=\"lots\" is ignored"),
            "{table}"
        );
        assert!(!table.contains("fallback"), "{table}");
    }

    #[test]
    fn the_table_explains_a_fallback() {
        let resolved = resolve(&Settings::default(), |_| None, None).expect("no flags");
        let table = as_table(&resolved, &[0], None);
        assert!(table.contains("1 data-parallel rank (0)"), "{table}");
        assert!(table.contains("--max-num-seqs"), "{table}");
    }

    #[test]
    fn json_has_the_same() {
        let value: serde_json::Value =
            serde_json::from_str(&as_json(&example(), &[0, 1], Some(256))).expect("JSON");
        assert_eq!(value["settings"]["engine_request_limit"]["worker"], 128);
        assert_eq!(
            value["settings"]["engine_request_limit"]["source"]["kind"],
            "flag"
        );
        assert_eq!(
            value["settings"]["request_queue_limit"]["source"]["name"],
            json!(null)
        );
        assert_eq!(value["warnings"].as_array().map(Vec::len), Some(1));
    }
}
