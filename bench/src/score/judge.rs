//! From readings to a verdict.

use crate::timing::{Cores, Reading, median, quantile};

use super::{Bar, Unit};

/// All readings of one contender, one a round.
#[derive(Clone, Debug)]
pub struct Series {
    /// As the table calls it.
    pub name: String,
    /// In the order of the rounds.
    pub readings: Vec<Reading>,
}

/// What a row gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was measured.
    pub name: &'static str,
    /// What the figures are in.
    pub unit: Unit,
    /// How it was measured.
    pub note: &'static str,
    /// Ours.
    pub ours: Series,
    /// Those beside it.
    pub peers: Vec<Series>,
    /// What ours is held to.
    pub bars: Vec<Bar>,
    /// Readings thrown away because both cores were not there.
    pub discarded: usize,
}

/// One bar of a row, judged.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The bar.
    pub bar: Bar,
    /// The peer's name; `None` for a bar in the row's unit.
    pub against: Option<String>,
    /// Median over the rounds of ours over the peer's *in the same round*, of the
    /// rounds in which both had their cores; for a bar in the row's unit, ours.
    pub ratio: f64,
    /// Quartiles of the same.
    pub spread: (f64, f64),
    /// Met or not.
    pub verdict: Verdict,
}

/// What becomes of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The median ratio is at most the bar.
    Met,
    /// It is more.
    Missed,
    /// There is nothing that must be met, or the row could not measure it, or
    /// fewer than half of its rounds had both cores.
    Unjudged,
}

impl Series {
    /// The figures of the readings that had their cores; of all, if none had.
    pub fn values(&self) -> Vec<f64> {
        let with = |all| {
            let readings = self.readings.iter();
            let kept = readings.filter(|reading| all || reading.cores != Cores::One);
            kept.map(|reading| reading.value).collect::<Vec<_>>()
        };
        let values = with(false);
        if values.is_empty() {
            with(true)
        } else {
            values
        }
    }

    /// The middle reading.
    pub fn median(&self) -> f64 {
        median(&mut self.values())
    }

    /// First and third quartile.
    pub fn spread(&self) -> (f64, f64) {
        quartiles(self.values())
    }
}

impl Outcome {
    /// Readings that stand although only one core was there.
    pub fn without_both_cores(&self) -> usize {
        let series = std::iter::once(&self.ours).chain(&self.peers);
        let readings = series.flat_map(|series| &series.readings);
        readings.filter(|r| r.cores == Cores::One).count()
    }

    /// Each bar in turn.
    pub fn judged(&self) -> Vec<Judged> {
        self.bars.iter().map(|bar| self.judge(*bar)).collect()
    }

    /// Ours over the peer's in each round in which both had their cores, and
    /// whether these are enough to judge by. If there is none, in every round.
    fn ratios(&self, peer: &Series) -> (Vec<f64>, bool) {
        let with = |all| {
            let pairs = self.ours.readings.iter().zip(&peer.readings);
            let there = |reading: &Reading| all || reading.cores != Cores::One;
            let kept = pairs.filter(|(ours, peers)| there(ours) && there(peers));
            kept.map(|(ours, peers)| ours.value / peers.value)
                .collect::<Vec<_>>()
        };
        let ratios = with(false);
        let enough = ratios.len() as f64 >= ENOUGH * self.ours.readings.len() as f64;
        if ratios.is_empty() {
            (with(true), false)
        } else {
            (ratios, enough)
        }
    }

    fn judge(&self, bar: Bar) -> Judged {
        let peer = bar.against.map(|index| &self.peers[index]);
        let (mut ratios, enough) = match peer {
            Some(peer) => self.ratios(peer),
            None => (self.ours.values(), true),
        };
        let ratio = median(&mut ratios);
        let verdict = match bar.at_most.filter(|_| bar.judged && enough) {
            None => Verdict::Unjudged,
            Some(at_most) if ratio <= at_most => Verdict::Met,
            Some(_) => Verdict::Missed,
        };
        Judged {
            bar,
            against: peer.map(|peer| peer.name.clone()),
            ratio,
            spread: quartiles(ratios),
            verdict,
        }
    }
}

/// The share of a row's rounds that must have had both cores.
const ENOUGH: f64 = 0.5;

fn quartiles(mut values: Vec<f64>) -> (f64, f64) {
    (quantile(&mut values, 0.25), quantile(&mut values, 0.75))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, values: &[f64]) -> Series {
        Series {
            name: name.into(),
            readings: values.iter().copied().map(Reading::of).collect(),
        }
    }

    fn outcome(bars: Vec<Bar>) -> Outcome {
        Outcome {
            name: "row",
            unit: Unit::Nanoseconds,
            note: "",
            ours: series("ours", &[1.0, 20.0, 3.0]),
            peers: vec![series("peer", &[2.0, 40.0, 6.0])],
            bars,
            discarded: 0,
        }
    }

    #[test]
    fn ratios_pair_what_was_read_in_one_round() {
        // The second round was ten times as slow for both.
        let judged = outcome(vec![Bar::times(0.5, 0), Bar::times(0.4, 0)]).judged();
        assert_eq!(judged[0].ratio, 0.5);
        assert_eq!(judged[0].verdict, Verdict::Met);
        assert_eq!(judged[1].verdict, Verdict::Missed);
    }

    #[test]
    fn rounds_without_both_cores_do_not_count() {
        let mut row = outcome(vec![Bar::times(0.5, 0)]);
        row.ours.readings[0] = Reading {
            value: 100.0,
            cores: Cores::One,
        };
        assert_eq!(row.judged()[0].ratio, 0.5);
        assert_eq!(row.judged()[0].verdict, Verdict::Met);
        assert_eq!(row.ours.median(), 11.5);
        row.peers[0].readings[1].cores = Cores::One;
        let judged = &row.judged()[0];
        assert_eq!(
            judged.verdict,
            Verdict::Unjudged,
            "one round of three is left"
        );
    }

    #[test]
    fn absolute_bars_look_at_ours_alone() {
        let judged = outcome(vec![Bar::absolute(3.0), Bar::absolute(2.0).told()]).judged();
        assert_eq!(judged[0].ratio, 3.0);
        assert_eq!(judged[0].verdict, Verdict::Met);
        assert_eq!(judged[1].verdict, Verdict::Unjudged);
    }
}
