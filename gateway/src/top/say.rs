//! Numbers as they are said.

/// A count out of its limit.
pub(super) fn of(count: u64, limit: u64) -> String {
    format!("{count}/{limit}")
}

pub(super) fn rate(per_second: f64) -> String {
    format!("{per_second:.1}/s")
}

/// A share of 1; `?` where it is not known.
pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "?".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// A time; `?` where it is not known.
pub(super) fn seconds(seconds: Option<f64>) -> String {
    match seconds {
        None => "?".to_owned(),
        Some(seconds) if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.1} s"),
    }
}

/// Where a server is, without what goes without saying.
pub(super) fn server(url: &str) -> &str {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    rest.trim_end_matches('/')
}
