//! What became of one lane's counts, or several together, in a window.

use tidegate::Lane;

use super::reading::{LaneReading, Reading};
use super::unusable::Unusable;

/// Fewer requests than these make no average.
const LEAST_ADMITTED: u64 = 20;

/// One in so many may leave before it is admitted.
const MOST_CANCELLED: u64 = 20;

/// The window of a few lanes that count as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Requests that waited for their first token, on the average of time.
    pub waiting: f64,
    /// Admitted, at once or from the queue.
    pub admitted: u64,
    /// Left before admission.
    pub cancelled: u64,
    /// Length in seconds.
    pub seconds: f64,
}

impl Window {
    /// Looks at these lanes, the first of which names them, from the first
    /// reading to the last. There are two or more, in the order of time.
    ///
    /// # Errors
    /// When they queued, were refused, left, went back, or were too few.
    pub fn of(readings: &[Reading], lanes: &[Lane]) -> Result<Self, Unusable> {
        let mut area = 0.0;
        let mut admitted = 0u64;
        let mut received = 0u64;
        let mut cancelled = 0u64;
        for &lane in lanes {
            let counts: Vec<LaneReading> = readings.iter().map(|all| all.lanes[&lane]).collect();
            for (pair, times) in counts.windows(2).zip(readings.windows(2)) {
                let [before, after] = pair else { continue };
                let since = |field: fn(&LaneReading) -> u64| {
                    field(after)
                        .checked_sub(field(before))
                        .ok_or(Unusable::Restarted(lane))
                };
                if since(|lane| lane.admitted_queue)? > 0 || before.queued.max(after.queued) > 0 {
                    return Err(Unusable::Queueing(lane));
                }
                admitted = admitted.saturating_add(since(|lane| lane.admitted_direct)?);
                received = received.saturating_add(since(|lane| lane.received)?);
                cancelled = cancelled.saturating_add(since(|lane| lane.cancelled)?);
                let rejected = since(|lane| lane.rejected)?;
                if rejected > 0 {
                    return Err(Unusable::Rejections { lane, rejected });
                }
                let seconds = (times[1].at - times[0].at).as_secs_f64();
                area += (before.waiting as f64 + after.waiting as f64) / 2.0 * seconds;
            }
        }
        let (first, last) = (&readings[0], &readings[readings.len() - 1]);
        let seconds = (last.at - first.at).as_secs_f64();
        if cancelled.saturating_mul(MOST_CANCELLED) > received {
            let lane = lanes[0];
            return Err(Unusable::Cancellations {
                lane,
                cancelled,
                received,
            });
        }
        if admitted < LEAST_ADMITTED {
            return Err(Unusable::FewAdmissions(admitted));
        }
        Ok(Self {
            waiting: area / seconds,
            admitted,
            cancelled,
            seconds,
        })
    }
}
