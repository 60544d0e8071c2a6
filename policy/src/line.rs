//! A straight line through what was observed lately: online least squares.
//!
//! Minimises the weighted squared error of `y = a + b x`, where an observation
//! that is `k` observations old weighs `memory^k`. Five sums are all that is
//! kept; each decays by `memory` before the next observation is added:
//!
//! ```text
//! b = (S Sxy - Sx Sy) / (S Sxx - Sx²)        a = (Sy - b Sx) / S
//! ```
//!
//! This is recursive least squares with exponential forgetting (Ljung, *System
//! Identification*, 1999, chapter 11) in one variable. `memory = 0.98` looks back
//! about 1 / (1 - 0.98) = 50 observations.
//!
//! # What is promised
//! Both of what the line is used for, waiting behind others and working through
//! input, only get longer with more of it. So a slope below 0 counts as 0 (the
//! line is then the mean), and an answer below 0 counts as 0: predictions never
//! fall as `x` grows.

/// A line fitted to recent observations.
#[derive(Clone, Debug)]
pub struct Line {
    memory: f64,
    s: f64,
    sx: f64,
    sy: f64,
    sxx: f64,
    sxy: f64,
}

impl Line {
    /// Weighs everything observed so far by `share` only, 0 to 1.
    pub fn forget(&mut self, share: f64) {
        for sum in [
            &mut self.s,
            &mut self.sx,
            &mut self.sy,
            &mut self.sxx,
            &mut self.sxy,
        ] {
            *sum *= share;
        }
    }

    /// No observations yet. `memory` is the weight kept from one observation
    /// to the next, 0 to 1; anything else counts as the nearest.
    #[must_use]
    pub fn new(memory: f64) -> Self {
        Line {
            memory: if memory.is_nan() {
                1.0
            } else {
                memory.clamp(0.0, 1.0)
            },
            s: 0.0,
            sx: 0.0,
            sy: 0.0,
            sxx: 0.0,
            sxy: 0.0,
        }
    }

    /// Adds an observation. One that is not finite, or beyond 1e12 in size,
    /// is left out.
    pub fn observe(&mut self, x: f64, y: f64) {
        let sane = |v: f64| v.abs() <= 1e12;
        if !(sane(x) && sane(y)) {
            return;
        }
        for (sum, term) in [
            (&mut self.s, 1.0),
            (&mut self.sx, x),
            (&mut self.sy, y),
            (&mut self.sxx, x * x),
            (&mut self.sxy, x * y),
        ] {
            *sum = self.memory * *sum + term;
        }
    }

    /// `y` at this `x`, at least 0; `None` before the first observation.
    #[must_use]
    pub fn predict(&self, x: f64) -> Option<f64> {
        if self.s <= 0.0 || x.is_nan() {
            return None;
        }
        let (mean_x, mean_y) = (self.sx / self.s, self.sy / self.s);
        let y = mean_y + self.slope() * (x - mean_x);
        Some(if y.is_nan() { mean_y } else { y }.max(0.0))
    }

    /// What one more of `x` adds, at least 0; 0 while all `x` were the same.
    #[must_use]
    pub fn slope(&self) -> f64 {
        let spread = self.s * self.sxx - self.sx * self.sx;
        // Rounding leaves a spread of this order where there is none.
        if spread <= 1e-9 * self.s * self.sxx {
            return 0.0;
        }
        ((self.s * self.sxy - self.sx * self.sy) / spread).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fitted(points: &[(f64, f64)]) -> Line {
        let mut line = Line::new(0.98);
        points.iter().for_each(|&(x, y)| line.observe(x, y));
        line
    }

    #[test]
    fn exact_data_gives_the_line_back() {
        let points: Vec<_> = (0..100)
            .map(|x| (f64::from(x), 40.0 + 3.0 * f64::from(x)))
            .collect();
        let line = fitted(&points);
        assert!((line.slope() - 3.0).abs() < 1e-6);
        assert!((line.predict(200.0).unwrap() - 640.0).abs() < 1e-3);
    }

    #[test]
    fn it_follows_a_change_within_its_memory() {
        let mut line = Line::new(0.98);
        for slope in [1.0, 5.0] {
            (0..300).for_each(|i| line.observe(f64::from(i % 20), slope * f64::from(i % 20)));
            assert!((line.slope() / slope - 1.0).abs() < 0.05, "{slope}");
        }
    }

    #[test]
    fn no_spread_is_the_mean_and_nothing_is_nothing() {
        assert_eq!(Line::new(0.98).predict(3.0), None);
        let line = fitted(&[(7.0, 10.0), (7.0, 20.0)]);
        assert_eq!(line.slope(), 0.0);
        assert!((line.predict(1e6).unwrap() - 15.0).abs() < 0.2);
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let line = fitted(&[(f64::NAN, 1.0), (1.0, f64::INFINITY), (1e300, 1.0)]);
        assert_eq!(line.predict(1.0), None);
        assert_eq!(fitted(&[(1.0, 2.0)]).predict(f64::NAN), None);
    }

    proptest! {
        #[test]
        fn predictions_never_fall_and_are_never_negative(
            points in prop::collection::vec((0.0..1e4_f64, -1e4..1e6_f64), 1..80),
            a in 0.0..1e5_f64,
            b in 0.0..1e5_f64,
        ) {
            let line = fitted(&points);
            let (near, far) = (line.predict(a.min(b)).unwrap(), line.predict(a.max(b)).unwrap());
            prop_assert!(0.0 <= near && near <= far + 1e-9 * far.abs(), "{near} {far}");
        }

        #[test]
        fn any_input_is_answered(
            memory in prop::num::f64::ANY,
            points in prop::collection::vec((prop::num::f64::ANY, prop::num::f64::ANY), 0..20),
            x in prop::num::f64::ANY,
        ) {
            let mut line = Line::new(memory);
            points.iter().for_each(|&(x, y)| line.observe(x, y));
            prop_assert!(line.predict(x).is_none_or(|y| y >= 0.0));
            prop_assert!(line.slope() >= 0.0);
        }
    }
}
