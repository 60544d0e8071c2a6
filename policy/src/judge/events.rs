//! What the judge is told, and learns from.

use std::time::Duration;

use super::{Inside, Judge, MOST_MODELS};
use crate::class::ClassId;
use crate::kept::Room;
use crate::profile::{ModelLatency, Profile};

impl Judge {
    /// A request entered the engine, having been held for `waited_ms` (0 if it
    /// was not) and having arrived behind `concurrency` others
    /// ([`Judge::concurrency`]).
    pub fn enters(
        &mut self,
        now: Duration,
        profile: Profile,
        waited_ms: f64,
        concurrency: u64,
    ) -> Inside {
        if waited_ms > 0.0
            && let Some(drain) = self.drains.get_mut(profile.class.0)
        {
            drain.entered(concurrency, waited_ms);
        }
        let doubted = self.doubts(now, &profile, waited_ms);
        if doubted.first_token || doubted.end_to_end {
            self.proven = false;
        }
        self.last_entry = now;
        self.inside += 1;
        self.promised = self.promised.saturating_add(profile.need);
        let input_until = self.unfilled.saturating_add(profile.input);
        self.unfilled = input_until;
        let takes = self.kept.enters(profile.class, Room::of_one(profile.need));
        let waited = Duration::try_from_secs_f64(waited_ms / 1e3).unwrap_or_default();
        Inside {
            profile,
            arrived: now.saturating_sub(waited),
            entered: now,
            takes,
            first_token: None,
            input_until,
            doubted,
        }
    }

    /// A held request left or was refused, after `waited_ms`.
    pub fn gives_up(&mut self, class: ClassId, waited_ms: f64, concurrency: u64) {
        if let Some(drain) = self.drains.get_mut(class.0) {
            drain.gave_up(concurrency, waited_ms);
        }
    }

    /// A request was turned away behind the gate: it is outside again. Its profile, and
    /// when it arrived.
    pub fn turned_away(&mut self, inside: Inside) -> (Profile, Duration) {
        self.goes(inside)
    }

    /// The first token of a request came. A second one changes nothing.
    pub fn first_token(&mut self, now: Duration, inside: &mut Inside) {
        if inside.first_token.is_some() {
            return;
        }
        inside.first_token = Some(now);
        self.prefilled(inside);
        let ms = since_ms(inside.entered, now);
        let slo = &self.settings.classes.get(inside.profile.class).slo;
        let disproves =
            inside.doubted.first_token && since_ms(inside.arrived, now) <= slo.first_token_ms;
        self.proven |= disproves;
        let model = self.learn(now, &inside.profile.model);
        if disproves {
            model.first_token_disproves(inside.input_until, ms);
        }
        model.first_token(now, inside.input_until, ms);
    }

    /// A request ended, having generated `output` tokens, if that is known.
    pub fn ended(&mut self, now: Duration, mut inside: Inside, output: Option<u64>) {
        // An answer without content has its first token at its end.
        self.first_token(now, &mut inside);
        let ms = since_ms(inside.entered, now);
        let slo = &self.settings.classes.get(inside.profile.class).slo;
        let kept = slo
            .end_to_end_ms
            .is_some_and(|most| since_ms(inside.arrived, now) <= most);
        let disproves = inside.doubted.end_to_end && kept;
        self.proven |= disproves;
        let model = self.learn(now, &inside.profile.model);
        if disproves {
            model.end_disproves(inside.profile.input, ms);
        }
        model.ended(now, inside.profile.input, output, ms);
        self.served(now, &inside);
        self.left(inside);
    }

    /// A request failed, or its client left: what it held is free, and nothing
    /// is learned.
    pub fn left(&mut self, inside: Inside) {
        let _ = self.goes(inside);
    }

    /// What it held is free.
    fn goes(&mut self, inside: Inside) -> (Profile, Duration) {
        if inside.first_token.is_none() {
            self.prefilled(&inside);
        }
        self.inside = self.inside.saturating_sub(1);
        self.promised = self.promised.saturating_sub(inside.profile.need);
        self.kept.leaves(inside.takes);
        (inside.profile, inside.arrived)
    }

    /// Whether the promise was kept, as the client saw it.
    fn served(&mut self, now: Duration, inside: &Inside) {
        let first = since_ms(inside.arrived, inside.first_token.unwrap_or(now));
        let end = since_ms(inside.arrived, now);
        let class = inside.profile.class;
        if let Some(quality) = self.quality.get_mut(class.0) {
            quality.ended(now, first, end);
        }
        let slo = &self.settings.classes.get(class).slo;
        self.tuner.ended(inside.profile.cost, slo.kept(first, end));
    }

    fn prefilled(&mut self, inside: &Inside) {
        self.unfilled = self.unfilled.saturating_sub(inside.profile.input);
    }

    fn learn(&mut self, now: Duration, model: &str) -> &mut ModelLatency {
        let known = self.models.contains_key(model) || self.models.len() < MOST_MODELS;
        let name = if known { model } else { "" };
        let rebuild = self.settings.rebuild;
        self.models
            .entry(name.to_owned())
            .or_insert_with(|| ModelLatency::new(rebuild, now))
    }
}

fn since_ms(then: Duration, now: Duration) -> f64 {
    now.saturating_sub(then).as_secs_f64() * 1e3
}
