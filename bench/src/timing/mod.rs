//! Timing loops: on one thread, and on two whose cores were really there.

mod alone;
pub mod cores;
mod pair;
pub mod spin;

pub use alone::alone;
pub use pair::pair;

/// One figure of one round.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// In the row's unit; nanoseconds an operation unless it says otherwise.
    pub value: f64,
    /// Whether both cores were there.
    pub cores: Cores,
}

/// What the spin calibration around a reading found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cores {
    /// The reading does not depend on it.
    NotAsked,
    /// Two spinning threads took as long as one, before and after.
    Both,
    /// They did not.
    One,
}

impl Reading {
    /// A reading that does not depend on two cores.
    pub fn of(value: f64) -> Self {
        Reading {
            value,
            cores: Cores::NotAsked,
        }
    }
}

/// A reading of something that has threads of its own, with a spin of two
/// threads before and after.
pub fn beside(measure: impl FnOnce() -> f64) -> Reading {
    let before = spin::two();
    let value = measure();
    Reading {
        value,
        cores: spin::found(before, spin::two()),
    }
}

/// The middle of the values, which are sorted on the way.
///
/// # Panics
/// There is none.
pub fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value at `share` of the way from the smallest to the largest, sorted on the way.
///
/// # Panics
/// There is no value.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    let place = share * last as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    values[low] + (values[high] - values[low]) * (place - low as f64)
}

#[cfg(test)]
mod tests {
    use super::{median, quantile};

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [1.0, 2.0]), 1.5);
        assert_eq!(quantile(&mut [0.0, 10.0], 0.25), 2.5);
        assert_eq!(quantile(&mut [7.0], 0.75), 7.0);
    }
}
