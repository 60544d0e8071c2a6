//! What the judge decides about a request.

use std::time::Duration;

use super::{Doubted, Judge, PROBE_AFTER};
use crate::class::ClassId;
use crate::decision::{Decision, Situation, decide};
use crate::fill;
use crate::kept::Room;
use crate::memory::{Memory, Unit};
use crate::profile::Profile;
use crate::reason::Reason;

impl Judge {
    /// Decides about a request that has been held for `waited_ms`, behind
    /// `ahead` others that are held and go first.
    #[must_use]
    pub fn decide(&self, now: Duration, profile: &Profile, waited_ms: f64, ahead: u64) -> Decision {
        let Some(state) = &self.state else {
            return Decision::GateAlone;
        };
        let memory = self.memory();
        let need = match memory.map(|memory| memory.unit) {
            Some(Unit::KvTokens) => profile.need,
            _ => 0,
        };
        let limit = self
            .limit_reached()
            .or_else(|| self.room_kept(profile.class, memory, need))
            .or((ahead > 0).then_some(Reason::ConcurrencyLimit));
        let free = limit.is_none() && memory.is_none_or(|memory| memory.fits(need));
        let running = state.engine.running.unwrap_or(self.inside);
        let batch = u64::from(self.size.batch);
        let situation = Situation {
            memory,
            need,
            critical_from: self.settings.critical_from,
            limit,
            waited_ms,
            drain_ms: if free {
                0.0
            } else {
                self.drain_ms(profile.class, ahead)
            },
            expected: self
                .model(&profile.model)
                .filter(|_| self.settings.expects)
                .map(|model| model.expected(self.unfilled, profile.input))
                .unwrap_or_default(),
            filling_ms: fill::filling(running, batch, self.settings.fill_below)
                .then(|| fill::next_step_ms(state.steps_per_second.unwrap_or(0.0))),
        };
        match decide(self.settings.classes.get(profile.class), &situation) {
            Decision::Refuse(Reason::SloViolationRisk) if free && self.may_probe(now) => {
                Decision::Admit
            }
            decision => decision,
        }
    }

    /// The memory in use, with credit for what was let in since the sample.
    pub(super) fn memory(&self) -> Option<Memory> {
        let memory = self.state.as_ref()?.memory?;
        Some(match memory.unit {
            Unit::KvTokens => memory.at_least(self.promised),
            // Promises are tokens.
            Unit::DeviceBytes => memory,
        })
    }

    /// Whether what is free is kept for other classes.
    fn room_kept(&self, class: ClassId, memory: Option<Memory>, need: u64) -> Option<Reason> {
        let withheld = self.withheld_from(class);
        if withheld == Room::default() {
            return None;
        }
        let all = self.room();
        let used = memory.map_or(0, |memory| memory.used);
        let places = self.inside.saturating_add(withheld.requests) < all.requests;
        let needs = need.saturating_add(withheld.tokens);
        let tokens = all.tokens == 0 || need == 0 || used.saturating_add(needs) <= all.tokens;
        (!(places && tokens)).then_some(Reason::RoomKept)
    }

    /// Whether a class has its share, and more is kept for others: then it waits for them,
    /// and they do not for it.
    #[must_use]
    pub fn has_its_share(&self, class: ClassId) -> bool {
        self.withheld_from(class) != Room::default()
    }

    /// Whether as many are inside as the limit allows, or somebody is held because all
    /// other places are kept.
    pub(super) fn all_places_taken(&self) -> bool {
        let classes = (0..self.settings.classes.all().len()).map(ClassId);
        let held = classes.filter(|class| self.kept.is_held(*class));
        let withheld = held.map(|class| self.withheld_from(class).requests);
        let most = withheld.max().unwrap_or(0);
        self.inside.saturating_add(most) >= u64::from(self.limit())
    }

    fn withheld_from(&self, class: ClassId) -> Room {
        if !self.kept.is_needed_beside(class) {
            return Room::default();
        }
        let classes = self.settings.classes.all();
        self.kept.withheld_from(class, classes, self.room())
    }

    /// All that there is to share: the limit, and the engine's cache where it is known. From
    /// [`critical_from`](crate::headroom) on that is not for everyone, unless all are critical.
    fn room(&self) -> Room {
        let pool = self.memory();
        let pool = pool.filter(|memory| memory.unit == Unit::KvTokens);
        let all_critical = self.settings.classes.all().iter().all(|of| of.critical);
        let share = if all_critical {
            1.0
        } else {
            self.settings.critical_from
        };
        Room {
            requests: self.limit().into(),
            tokens: pool.map_or(0, |pool| (pool.total as f64 * share) as u64),
        }
    }

    fn may_probe(&self, now: Duration) -> bool {
        self.inside == 0 || self.proven || now.saturating_sub(self.last_entry) >= PROBE_AFTER
    }

    /// What a request that enters now is expected to break of its promise, if it
    /// enters to put the estimate to the test.
    pub(super) fn doubts(&self, now: Duration, profile: &Profile, waited_ms: f64) -> Doubted {
        let Some(model) = self.model(&profile.model).filter(|_| self.may_probe(now)) else {
            return Doubted::default();
        };
        let expected = model.expected(self.unfilled, profile.input);
        let slo = &self.settings.classes.get(profile.class).slo;
        Doubted {
            first_token: waited_ms + expected.first_token_ms > slo.first_token_ms,
            end_to_end: slo
                .end_to_end_ms
                .is_some_and(|most| waited_ms + expected.end_to_end_ms > most),
        }
    }

    /// Requests that have to go before one that arrives behind `ahead` held ones.
    #[must_use]
    pub fn concurrency(&self, ahead: u64) -> u64 {
        self.inside.saturating_add(ahead)
    }

    fn drain_ms(&self, class: ClassId, ahead: u64) -> f64 {
        let drain = self.drains.get(class.0);
        drain.map_or(0.0, |drain| drain.predict(self.concurrency(ahead)))
    }

    fn limit_reached(&self) -> Option<Reason> {
        let ranks = self.size.ranks.max(1);
        let (factors, limit) = (self.factors(), self.size.request_limit / ranks);
        let of_all = |limit| u64::from(ranks) * u64::from(limit);
        if self.inside < of_all(factors.limit(limit)) {
            None
        } else if self.inside < of_all(factors.warm_limit(limit)) {
            Some(Reason::ColdStart)
        } else {
            Some(Reason::ConcurrencyLimit)
        }
    }
}
