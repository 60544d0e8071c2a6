//! Values that several commands take.

use std::net::SocketAddr;
use std::time::Duration;

/// Longest time that a flag may ask for, in seconds: 100 days.
const LONGEST_SECONDS: f64 = 8_640_000.0;

/// Reads a rate or a factor, from 0.001 to a million.
///
/// # Errors
/// A text that says so.
pub fn rate(text: &str) -> Result<f64, String> {
    let within = |value: &f64| (0.001..=1e6).contains(value);
    number(text)
        .filter(within)
        .ok_or_else(|| "a number from 0.001 to 1000000".to_owned())
}

/// Reads a share from 0 to 1.
///
/// # Errors
/// A text that says so.
pub fn share(text: &str) -> Result<f64, String> {
    number(text)
        .filter(|v| (0.0..=1.0).contains(v))
        .ok_or_else(|| "a number from 0 to 1".to_owned())
}

/// Reads seconds above 0, with or without an `s` behind them: `30`, `0.5`, `60s`.
///
/// # Errors
/// A text that says so.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    number(text.strip_suffix('s').unwrap_or(text))
        .filter(|value| *value > 0.0 && *value <= LONGEST_SECONDS)
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "seconds above 0, such as 30 or 0.5, up to 8640000".to_owned())
}

/// Reads an address to listen on.
///
/// # Errors
/// A text that says so.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let said = "an IP address and a port, such as 127.0.0.1:8100 or [::]:8100";
    text.trim().parse().map_err(|_| said.to_owned())
}

fn number(text: &str) -> Option<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_in_range_are_read() {
        assert_eq!(rate(" 2.5 "), Ok(2.5));
        assert_eq!(share("1"), Ok(1.0));
        assert_eq!(seconds("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(address(" [::1]:80 ").unwrap().port(), 80);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for bad in ["", "0", "-1", "NaN", "inf", "x"] {
            assert!(rate(bad).is_err() && seconds(bad).is_err(), "{bad}");
        }
        for bad in [
            "",
            "foo",
            "8100",
            ":8100",
            "localhost:8100",
            "::1",
            "1.2.3.4:65536",
        ] {
            assert!(address(bad).unwrap_err().contains("[::]:8100"), "{bad}");
        }
        for bad in ["1.01", "-0.1", "NaN"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in any::<String>()) {
            let _ = (rate(&text), share(&text), seconds(&text), address(&text));
        }
    }
}
