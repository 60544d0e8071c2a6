//! Numbers with a range, as keys of the file accept them.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// A number, whole or not, that a rule accepts.
struct Number {
    accepted: &'static str,
    accepts: fn(f64) -> bool,
}

impl Visitor<'_> for Number {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.accepted)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        if (self.accepts)(value) {
            Ok(value)
        } else {
            Err(E::invalid_value(Unexpected::Float(value), &self))
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        if (self.accepts)(value as f64) {
            Ok(value as f64)
        } else {
            Err(E::invalid_value(Unexpected::Signed(value), &self))
        }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        self.visit_f64(value as f64)
    }
}

/// A share, 0 to 1.
pub(super) fn share<'de, D: Deserializer<'de>>(value: D) -> Result<f64, D::Error> {
    value.deserialize_any(Number {
        accepted: "a number from 0 to 1",
        accepts: |value| (0.0..=1.0).contains(&value),
    })
}

/// A share above 0.
pub(super) fn share_above_0<'de, D: Deserializer<'de>>(value: D) -> Result<f64, D::Error> {
    value.deserialize_any(Number {
        accepted: "a number above 0 and at most 1",
        accepts: |value| value > 0.0 && value <= 1.0,
    })
}

/// A weight.
pub(super) fn weight<'de, D: Deserializer<'de>>(value: D) -> Result<f64, D::Error> {
    value.deserialize_any(Number {
        accepted: "a number from 0.001 to 1000",
        accepts: |value| (0.001..=1_000.0).contains(&value),
    })
}

/// A promise, in milliseconds.
pub(super) fn promise_ms<'de, D: Deserializer<'de>>(value: D) -> Result<f64, D::Error> {
    value.deserialize_any(Number {
        accepted: "milliseconds from 1 to 3600000 (an hour)",
        accepts: |value| (1.0..=3_600_000.0).contains(&value),
    })
}

/// The same, for a key that may be left out.
pub(super) fn some_promise_ms<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<f64>, D::Error> {
    promise_ms(value).map(Some)
}

/// Milliseconds that may be 0.
pub(super) fn plain_ms<'de, D: Deserializer<'de>>(value: D) -> Result<f64, D::Error> {
    value.deserialize_any(Number {
        accepted: "milliseconds from 0 to 3600000 (an hour)",
        accepts: |value| (0.0..=3_600_000.0).contains(&value),
    })
}

/// The same, as a time.
pub(super) fn time_ms<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    plain_ms(value).map(|ms| Duration::from_secs_f64(ms / 1e3))
}

/// An interval, which is never 0.
pub(super) fn interval_ms<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    promise_ms(value).map(|ms| Duration::from_secs_f64(ms / 1e3))
}

/// A rate.
pub(super) fn per_second<'de, D: Deserializer<'de>>(value: D) -> Result<f64, D::Error> {
    value.deserialize_any(Number {
        accepted: "requests per second from 0.001 to 1000000",
        accepts: |value| (0.001..=1e6).contains(&value),
    })
}

/// A burst.
pub(super) fn burst<'de, D: Deserializer<'de>>(value: D) -> Result<u32, D::Error> {
    let number = value.deserialize_any(Number {
        accepted: "a whole number of requests from 1 to 1000000",
        accepts: |value| (1.0..=1e6).contains(&value) && value.fract() == 0.0,
    })?;
    Ok(number as u32)
}

/// A priority.
pub(super) fn priority<'de, D: Deserializer<'de>>(value: D) -> Result<u8, D::Error> {
    let number = value.deserialize_any(Number {
        accepted: "a whole number from 0 to 255",
        accepts: |value| (0.0..=255.0).contains(&value) && value.fract() == 0.0,
    })?;
    Ok(number as u8)
}
